// Recall and average precision through black-box differentiated ranks, Rolinek et al. 2020
// (formulas: kernels/rows/rambo_row.h). rambo_recall is a mean over (query, positive) pairs or over
// queries, rambo_ap over queries with a positive. Settings of the paper: lambda 4 / 0.2 / 0.2,
// margin 0.02 / 0.05 / 0.02 for SOP / In-Shop / CUB.
#include "kernels/rows/rambo_row.h"
#include "losses/entries.h"
#include "losses/rows/row_loss.h"

namespace rk {
namespace {

template <class S> struct RamboAp : MeanOverQueries<S> {
  using Row = RamboRow<S>;
  typename Row::Params params;
  void begin(const BatchIndex& index) override {
    // value_weight() divides by 0 if no query has a positive.
    params.share = index.with_positive() > 0 ? this->value_weight(index) : 0;
  }
};

template <class S> struct RamboRecall : RamboAp<S> {
  double value_weight(const BatchIndex& index) const override {
    if (this->params.mean) return RamboAp<S>::value_weight(index);
    return 1 / static_cast<double>(index.positive_pairs());
  }
};

template <class S, class Formula> Formula make_with(Rambo variant, const LossValues& values) {
  Formula formula;
  formula.params.variant = variant;
  formula.params.lambda = values.number("lambda");
  formula.params.margin = values.number("margin");
  return formula;
}

template <class S> RamboAp<S> make_ap(const LossValues& values) {
  return make_with<S, RamboAp<S>>(Rambo::kAp, values);
}

template <class S> RamboRecall<S> make_recall(const LossValues& values) {
  auto formula = make_with<S, RamboRecall<S>>(
      values.is("weight", "log") ? Rambo::kRecallLog : Rambo::kRecallLogLog, values);
  formula.params.mean = values.is("mean", "queries");
  return formula;
}

constexpr const char* kPaper =
    "Rolinek, Musil, Paulus, Vlastelica, Michaelis, Martius: Optimizing Rank-based Metrics with "
    "Blackbox Differentiation, CVPR 2020";

std::vector<LossParameter> parameters() {
  return {number_parameter("lambda", "4", 1e-3, 1e6,
                           "how far scores move in the backward pass; "
                           "paper: SOP 4, In-Shop 0.2, CUB 0.2"),
          number_parameter("margin", "0.02", 0, 2,
                           "between positives and negatives; paper: SOP 0.02, "
                           "In-Shop 0.05, CUB 0.02")};
}

}  // namespace

LossEntry rambo_recall_entry() {
  std::vector<LossParameter> all = {
      choice_parameter("weight", {"log", "loglog"}, "w(r) = log(1+r) or log(1+log(1+r))"),
      choice_parameter(
          "mean", {"pairs", "queries"},
          "over (query, positive) pairs, as in the authors' code, or over each query's "
          "positives and then over queries, as in the paper")};
  for (LossParameter& parameter : parameters()) all.push_back(std::move(parameter));
  return {.name = "rambo_recall",
          .kind = LossKind::kEmbeddings,
          .summary = "recall at every K, exact ranks, black-box gradient",
          .paper = std::string(kPaper) + "; eq. 14, 16-20",
          .parameters = std::move(all),
          .make_float = make_row_loss<float, make_recall<float>>,
          .make_double = make_row_loss<double, make_recall<double>>,
          .differentiable = false};
}

LossEntry rambo_ap_entry() {
  return {.name = "rambo_ap",
          .kind = LossKind::kEmbeddings,
          .summary = "average precision, exact ranks, black-box gradient",
          .paper = std::string(kPaper) + "; eq. 14, 21-22",
          .parameters = parameters(),
          .make_float = make_row_loss<float, make_ap<float>>,
          .make_double = make_row_loss<double, make_ap<double>>,
          .differentiable = false};
}

}  // namespace rk
