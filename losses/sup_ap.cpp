// SupAP with its calibration term (ROADMAP), Ramzi et al. 2021 (formula:
// kernels/rows/sup_ap_row.h). Mean over queries with a positive; the calibration is a contrastive
// loss with pos=0.9, neg=0.6.
// compat=official: the query is one of its own positives.
#include "kernels/rows/sup_ap_row.h"
#include "losses/entries.h"
#include "losses/rows/row_loss.h"

#include <cmath>

namespace rk {
namespace {

template <class S> struct SupAp : MeanOverQueries<S> {
  using Row = SupApRow<S>;
  typename Row::Params params;
  // Pairs of queries without a positive are calibrated too.
  bool counts(const BatchIndex&, int) const override { return true; }
};

template <class S> SupAp<S> make_sup_ap(const LossValues& values) {
  SupAp<S> formula;
  auto& params = formula.params;
  const double tau = values.number("tau");
  const double delta = values.number("delta");
  const double offset = values.number("offset");
  params.tau = static_cast<S>(tau);
  params.rho = static_cast<S>(values.number("rho"));
  params.delta = static_cast<S>(delta);
  params.offset = static_cast<S>(offset > 0 ? offset : 0.5 + 1 / (1 + std::exp(-delta / tau)));
  params.lambda = static_cast<S>(values.number("lambda"));
  params.with_self = values.is("compat", "official");
  params.contrastive.pos = S(0.9);
  params.contrastive.neg = S(0.6);
  return formula;
}

}  // namespace

LossEntry sup_ap_entry() {
  return {.name = "sup_ap",
          .kind = LossKind::kEmbeddings,
          .summary = "an upper bound of 1 - AP, calibrated by a contrastive loss (ROADMAP)",
          .paper =
              "Ramzi, Thome, Rambour, Audebert, Bitot: Robust and Decomposable Average "
              "Precision for Image Retrieval, NeurIPS 2021",
          .parameters = {number_parameter("tau", "0.01", 1e-4, 100, "temperature of the sigmoid"),
                         number_parameter("rho", "100", 0, 1e6, "slope beyond delta"),
                         number_parameter("delta", "0.05", 0, 4, "where the slope begins"),
                         number_parameter("lambda", "0.5", 0, 1, "share of the calibration"),
                         number_parameter("offset", "0", 0, 100,
                                          "height where the slope begins; 0: 0.5 + sg(delta), no "
                                          "step there"),
                         compat_parameter("the query is one of its own positives")},
          .make_float = make_row_loss<float, make_sup_ap<float>>,
          .make_double = make_row_loss<double, make_sup_ap<double>>,
          .sigmoids = [](double columns, double positives) { return columns * positives; }};
}

}  // namespace rk
