#include "losses/auc/auc.h"

#include "kernels/launch.h"
#include "kernels/rows/auc_row.h"
#include "kernels/rows/wilcoxon_pairs.h"
#include "losses/auc/auc_gradient.h"
#include "losses/rows/row_loss.h"

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
  void allocate(const Context& context, const LossShape&) {
    table.build(context, static_cast<double>(params.r), step, params.count);
    params.gradient = table.gradient();
  }
  void fill(const Context& context, const S* slopes) { table.fill(context, slopes); }
  std::int64_t bytes() const { return table.bytes(); }
};

template <class S> struct Wilcoxon : MeanOverQueriesWithNegative<S> {
  using Row = WilcoxonRow<S>;
  typename Row::Params params;
  Memory positive, negative;  // [rows], f+ and f- of the queries that count
  Memory query, count;        // int32 [rows]: the rows of these queries; [1]: their number
  Memory values;              // [rows]

  void allocate(const Context& context, const LossShape& shape) {
    const auto rows = static_cast<std::size_t>(shape.rows);
    for (Memory* memory : {&positive, &negative, &values}) {
      *memory = context.allocate(rows * sizeof(S));
    }
    query = context.allocate(rows * sizeof(std::int32_t));
    count = context.allocate(sizeof(std::int32_t));
  }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(positive.bytes() + negative.bytes() + query.bytes() +
                                     count.bytes() + values.bytes());
  }

  // Compares every query that counts with all of them.
  void finish(const Context& context, const RowBatch<S>& batch, const S* stats, S* slopes,
              double* part) const {
    if constexpr (kRunsOnGpu<S>) {
      if (context.on_gpu()) return finish_on_gpu(context, batch, stats, slopes, part);
    }
    auto* f_positive = positive.template as<S>();
    auto* f_negative = negative.template as<S>();
    auto* queries = query.template as<std::int32_t>();
    auto* sums = values.template as<S>();
    int found = 0;
    for (int i = 0; i < batch.rows; ++i) {
      if (batch.counted[i] == 0) continue;
      queries[found] = i;
      f_positive[found] = stats[std::ptrdiff_t{2} * i];
      f_negative[found++] = stats[std::ptrdiff_t{2} * i + 1];
    }
    run_rows(context.threads(), found, nullptr, nullptr, 0,
             [&](const SerialTeam& team, std::int64_t k, std::byte*) {
               WilcoxonPairs<S>::row(team, params.r, f_positive, f_negative, found,
                                     static_cast<int>(k), sums + k, slopes + 2 * queries[k]);
             });
    double total = 0;
    for (int k = 0; k < found; ++k) total += static_cast<double>(sums[k]);
    *part = total / (static_cast<double>(found) * found);
  }

 private:
  void finish_on_gpu(const Context& context, const RowBatch<S>& batch, const S* stats, S* slopes,
                     double* part) const {
    const HardestPairs pairs{positive.template as<S>(), negative.template as<S>(),
                             query.template as<std::int32_t>(), count.template as<std::int32_t>()};
    auto* sums = values.template as<S>();
    launch(context, GatherHardestPairs{batch.rows, batch.counted, stats, pairs});
    launch(context, MeetHardestPairs{batch.rows, params.r, pairs, sums, slopes});
    launch(context, SumHardestPairs{pairs, sums, part});
  }
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
          .scores_with_gradient = kScoresWithGradient<AucHard<float>>};
}

LossEntry auc_ba_entry() {
  return {.name = "auc_ba",
          .kind = LossKind::kEmbeddings,
          .summary = "area under the ROC curve of all pairs",
          .paper = std::string(kPaper) + "; eq. 5-8",
          .parameters = {step_parameter()},
          .make_float = make_row_loss<float, make_auc<float, AucAll>>,
          .make_double = make_row_loss<double, make_auc<double, AucAll>>};
}

LossEntry wilcoxon_bh_entry() {
  return {.name = "wilcoxon_bh",
          .kind = LossKind::kEmbeddings,
          .summary = "every hardest positive above every hardest negative",
          .paper = std::string(kPaper) + "; eq. 11",
          .parameters = {number_parameter("r", "42.2", 1e-2, 1e4, "steepness of the sigmoid")},
          .make_float = make_row_loss<float, make_wilcoxon<float>>,
          .make_double = make_row_loss<double, make_wilcoxon<double>>,
          .sigmoids = [](double columns, double) { return 3 * columns; },
          .scores_with_gradient = kScoresWithGradient<Wilcoxon<float>>};
}

}  // namespace rk
