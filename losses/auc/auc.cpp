#include "losses/auc/auc.h"

#include "kernels/rows/auc_row.h"
#include "kernels/rows/wilcoxon_row.h"
#include "losses/auc/auc_gradient.h"
#include "losses/cuda/auc.h"

#include <cmath>

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
  bool counts(const BatchIndex&, int) const { return true; }
  void plan(const LossShape&) {
    table.plan(static_cast<double>(params.r), step, params.count);
    params.gradient = table.gradient();
  }
  void fill(const S* slopes) { table.fill(slopes); }
};

template <class S> struct Wilcoxon : MeanOverQueriesWithNegative<S> {
  using Row = WilcoxonRow<S>;
  typename Row::Params params;
  std::vector<S> positive;  // f+ and f- of the queries that count
  std::vector<S> negative;
  std::vector<int> query;
  std::vector<S> values;
  void plan(const LossShape& shape) {
    const auto rows = static_cast<std::size_t>(shape.rows);
    positive.resize(rows);
    negative.resize(rows);
    query.resize(rows);
    values.resize(rows);
  }

  double finish(const Context& context, const BatchIndex& index, const S* stats, S* slopes) {
    int count = 0;
    for (int i = 0; i < index.rows(); ++i) {
      if (!this->counts(index, i)) continue;
      const auto at = static_cast<std::size_t>(count++);
      query[at] = i;
      positive[at] = stats[std::ptrdiff_t{2} * i];
      negative[at] = stats[std::ptrdiff_t{2} * i + 1];
    }
    run_rows(context.threads(), count, nullptr, nullptr, 0,
             [&](const SerialTeam& team, std::int64_t k, std::byte*) {
               const auto at = static_cast<std::size_t>(k);
               WilcoxonPairs<S>::row(team, params.r, positive.data(), negative.data(), count,
                                     static_cast<int>(k), &values[at], slopes + 2 * query[at]);
             });
    double total = 0;
    for (int k = 0; k < count; ++k) total += values[static_cast<std::size_t>(k)];
    return total / (static_cast<double>(count) * count);
  }
};

template <class S, template <class> class Formula> Formula<S> make_auc(const LossValues& values) {
  const double ds = values.number("ds");
  Formula<S> formula;
  formula.params.step = static_cast<S>(ds);
  formula.params.count = static_cast<int>(std::floor(2 / ds + 1e-9)) + 1;
  formula.params.r = static_cast<S>(auc_steepness(ds));
  if constexpr (requires { formula.step; }) formula.step = ds;
  return formula;
}

template <class S> Wilcoxon<S> make_wilcoxon(const LossValues& values) {
  Wilcoxon<S> formula;
  formula.params.r = static_cast<S>(values.number("r"));
  return formula;
}

constexpr const char* kPaper =
    "Gajic, Amato, Baldrich, van de Weijer, Gatta: Area Under the ROC Curve Maximization for "
    "Metric "
    "Learning, CVPR workshops 2022";

LossParameter step_parameter() {
  return number_parameter("ds", "0.05", 0.005, 1,
                          "step of the thresholds; the sigmoids' steepness follows from it");
}

}  // namespace

LossEntry auc_bh_entry() {
  return {.name = "auc_bh",
          .kind = LossKind::kEmbeddings,
          .summary = "area under the ROC curve of each query's hardest pair",
          .paper = std::string(kPaper) + "; eq. 9",
          .parameters = {step_parameter()},
          .make_float = make_row_loss<float, make_auc<float, AucHard>>,
          .make_double = make_row_loss<double, make_auc<double, AucHard>>,
          .make_device = device_row_loss<make_auc<float, AucHard>>(),
          .scores_with_gradient = kScoresWithGradient<AucHard<float>>};
}

LossEntry auc_ba_entry() {
  return {.name = "auc_ba",
          .kind = LossKind::kEmbeddings,
          .summary = "area under the ROC curve of all pairs",
          .paper = std::string(kPaper) + "; eq. 5-8",
          .parameters = {step_parameter()},
          .make_float = make_row_loss<float, make_auc<float, AucAll>>,
          .make_double = make_row_loss<double, make_auc<double, AucAll>>,
          .make_device = device_row_loss<make_auc<float, AucAll>>()};
}

LossEntry wilcoxon_bh_entry() {
  return {.name = "wilcoxon_bh",
          .kind = LossKind::kEmbeddings,
          .summary = "every hardest positive above every hardest negative",
          .paper = std::string(kPaper) + "; eq. 11",
          .parameters = {number_parameter("r", "42.2", 1e-2, 1e4, "steepness of the sigmoid")},
          .make_float = make_row_loss<float, make_wilcoxon<float>>,
          .make_double = make_row_loss<double, make_wilcoxon<double>>,
          .make_device = device_row_loss<make_wilcoxon<float>>(),
          .sigmoids = [](double columns, double) { return 3 * columns; },
          .scores_with_gradient = kScoresWithGradient<Wilcoxon<float>>};
}

}  // namespace rk
