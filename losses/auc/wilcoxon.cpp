// Every hardest positive above every hardest negative, Gajic et al. 2022, eq. 11
// (kernels/rows/wilcoxon_row.h): the comparison whose mean is the area under the ROC curve.
#include "kernels/launch.h"
#include "kernels/rows/wilcoxon_hardest_pairs.h"
#include "kernels/rows/wilcoxon_row.h"
#include "losses/auc/auc.h"
#include "losses/rows/row_loss.h"

namespace rk {
namespace {

template <class S> struct Wilcoxon : MeanOverQueriesWithNegative<S> {
  using Row = WilcoxonRow<S>;
  typename Row::Params params;
  Memory positive, negative;  // [rows], f+ and f- of the queries that count
  Memory query, count;        // int32 [rows]: the rows of these queries; [1]: their number
  Memory values;              // [rows]

  void allocate(const Context& context, const LossShape& shape) override {
    for (Memory* memory : {&positive, &negative, &values}) {
      *memory = context.allocate<S>(shape.rows);
    }
    query = context.allocate<std::int32_t>(shape.rows);
    count = context.allocate<std::int32_t>(1);
  }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>(positive.bytes() + negative.bytes() + query.bytes() +
                                     count.bytes() + values.bytes());
  }

  // Compares every query that counts with all of them.
  void finish(const Context& context, const RowBatch<S>& batch, const S* stats, S* slopes,
              double* part) const {
    const HardestPairs<S> pairs{positive.template as<S>(), negative.template as<S>(),
                                query.template as<std::int32_t>(),
                                count.template as<std::int32_t>()};
    auto* sums = values.template as<S>();
    launch(context, GatherHardestPairs<S>{batch.rows, batch.counted, stats, pairs});
    launch(context, CompareHardestPairs<S>{batch.rows, params.r, pairs, sums, slopes});
    launch(context, SumHardestPairs<S>{pairs, sums, part});
  }
};

template <class S> Wilcoxon<S> make_wilcoxon(const LossValues& values) {
  Wilcoxon<S> formula;
  formula.params.r = static_cast<S>(values.number("r"));
  return formula;
}

}  // namespace

LossEntry wilcoxon_bh_entry() {
  return {.name = "wilcoxon_bh",
          .kind = LossKind::kEmbeddings,
          .summary = "every hardest positive above every hardest negative",
          .paper = std::string(kAucPaper) + "; eq. 11",
          .parameters = {number_parameter("r", "42.2", 1e-2, 1e4, "steepness of the sigmoid")},
          .make_float = make_row_loss<float, make_wilcoxon<float>>,
          .make_double = make_row_loss<double, make_wilcoxon<double>>,
          .sigmoids = [](double columns, double) { return 3 * columns; },
          .scores_with_gradient = kScoresWithGradient<Wilcoxon<float>>};
}

}  // namespace rk
