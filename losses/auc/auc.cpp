// The area under the ROC curve, Gajic et al. 2022 (kernels/rows/auc_row.h):
//   loss = 1 - sum over t = -1, ..., 1 - ds of (T(t) + T(t + ds))/2 * (F(t) - F(t + ds))
// with T and F the means at t over each query's hardest pair (auc_bh: queries with a positive and a
// negative) or over all ordered pairs (auc_ba).
#include "losses/auc/auc.h"
#include "kernels/rows/auc_row.h"
#include "losses/auc/auc_gradient.h"
#include "losses/rows/row_loss.h"

namespace rk {
namespace {

template <class S> struct AucHard : MeanOverQueriesWithNegative<S> {
  using Row = AucHardRow<S>;
  typename Row::Params params;
};

template <class S> struct AucAll : MeanOverQueriesWithNegative<S> {
  using Row = AucAllRow<S>;
  typename Row::Params params;
  double step = 0;
  AucGradientTable<S> table;
  // All pairs count, whether or not their query has both kinds.
  bool counts(const BatchIndex&, int) const override { return true; }
  void allocate(const Context& context, const LossShape&) override {
    table.build(context, static_cast<double>(params.r), step, params.count);
    params.gradient = table.gradient();
  }
  void fill(const Context& context, const S* slopes) override { table.fill(context, slopes); }
  std::int64_t bytes() const override { return table.bytes(); }
};

template <class S, template <class> class Formula> Formula<S> make_auc(const LossValues& values) {
  const double ds = values.number("ds");
  Formula<S> formula;
  formula.params.step = static_cast<S>(ds);
  formula.params.count = auc_thresholds(ds);
  formula.params.r = static_cast<S>(auc_steepness(ds));
  if constexpr (requires { formula.step; }) formula.step = ds;
  return formula;
}

LossParameter step_parameter() {
  return number_parameter("ds", "0.05", 0.005, 1,
                          "step of the thresholds; the sigmoids' steepness follows from it");
}

}  // namespace

LossEntry auc_bh_entry() {
  return {.name = "auc_bh",
          .kind = LossKind::kEmbeddings,
          .summary = "area under the ROC curve of each query's hardest pair",
          .paper = std::string(kAucPaper) + "; eq. 9",
          .parameters = {step_parameter()},
          .make_float = make_row_loss<float, make_auc<float, AucHard>>,
          .make_double = make_row_loss<double, make_auc<double, AucHard>>,
          .scores_with_gradient = kScoresWithGradient<AucHard<float>>};
}

LossEntry auc_ba_entry() {
  return {.name = "auc_ba",
          .kind = LossKind::kEmbeddings,
          .summary = "area under the ROC curve of all pairs",
          .paper = std::string(kAucPaper) + "; eq. 5-8",
          .parameters = {step_parameter()},
          .make_float = make_row_loss<float, make_auc<float, AucAll>>,
          .make_double = make_row_loss<double, make_auc<double, AucAll>>};
}

}  // namespace rk
