// PNP, Li et al. 2022: a function of the number of negatives before each positive, which differs by
// variant (formulas: kernels/rows/pnp_row.h). Value: mean over queries with a positive of the mean
// over their positives. compat=official: the query is one of its own positives; pnp_iu lacks "- n".
#include "kernels/rows/pnp_row.h"
#include "losses/entries.h"
#include "losses/rows/row_loss.h"

namespace rk {
namespace {

template <class S> struct PnpFormula : MeanOverQueries<S> {
  using Row = PnpRow<S>;
  typename Row::Params params;
};

template <class S, Pnp kVariant> PnpFormula<S> make_pnp(const LossValues& values) {
  PnpFormula<S> formula;
  formula.params.variant = kVariant;
  formula.params.tau = static_cast<S>(values.number("tau"));
  if constexpr (kVariant == Pnp::kIb) formula.params.b = static_cast<S>(values.number("b"));
  if constexpr (kVariant == Pnp::kDq) formula.params.alpha = static_cast<S>(values.number("alpha"));
  formula.params.with_self = values.is("compat", "official");
  formula.params.without_minus_n = values.is("compat", "official");
  return formula;
}

template <Pnp kVariant>
LossEntry entry(const std::string& name, const std::string& equation, const std::string& summary,
                std::vector<LossParameter> parameters) {
  parameters.push_back(number_parameter("tau", "0.01", 1e-4, 100, "temperature of the sigmoids"));
  parameters.push_back(compat_parameter(kVariant == Pnp::kIu
                                            ? "the query is its own positive, and no '- n'"
                                            : "the query is one of its own positives"));
  return {.name = name,
          .kind = LossKind::kEmbeddings,
          .summary = summary,
          .paper =
              "Li et al.: Rethinking the Optimization of Average Precision: Only "
              "Penalizing Negative Instances before Positive Ones is Enough, AAAI 2022; eq. " +
              equation,
          .parameters = std::move(parameters),
          .make_float = make_row_loss<float, make_pnp<float, kVariant>>,
          .make_double = make_row_loss<double, make_pnp<double, kVariant>>,
          .sigmoids = [](double columns, double positives) { return columns * positives; }};
}

}  // namespace

LossEntry pnp_o_entry() {
  return entry<Pnp::kO>("pnp_o", "5", "negatives before a positive, n of them: f(n) = n", {});
}

LossEntry pnp_iu_entry() {
  return entry<Pnp::kIu>("pnp_iu", "7",
                         "negatives before a positive: (1+n) log(1+n) - n, unbounded slope", {});
}

LossEntry pnp_ib_entry() {
  return entry<Pnp::kIb>("pnp_ib", "9",
                         "negatives before a positive: (bn - log(1+bn))/b^2, slope bounded by 1/b",
                         {number_parameter("b", "2", 1e-3, 1e3, "bound of the slope is 1/b")});
}

LossEntry pnp_ds_entry() {
  return entry<Pnp::kDs>("pnp_ds", "12",
                         "negatives before a positive: log(1+n), slope falls as 1/(1+n)", {});
}

LossEntry pnp_dq_entry() {
  return entry<Pnp::kDq>(
      "pnp_dq", "13", "negatives before a positive: 1 - (1+n)^-alpha, slope falls faster",
      {number_parameter("alpha", "1", 1e-3, 1e2, "4 for the paper's best run on SOP")});
}

}  // namespace rk
