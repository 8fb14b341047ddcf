// Multi-similarity loss, Wang et al. 2019 (formula: kernels/rows/multi_similarity_row.h). Mean over
// queries with a positive and a negative; queries for which mining keeps no pair count as 0.
#include "kernels/rows/multi_similarity_row.h"
#include "losses/entries.h"
#include "losses/rows/row_loss.h"

namespace rk {
namespace {

template <class S> struct MultiSimilarity : MeanOverQueriesWithNegative<S> {
  using Row = MultiSimilarityRow<S>;
  typename Row::Params params;
};

template <class S> MultiSimilarity<S> make_multi_similarity(const LossValues& values) {
  MultiSimilarity<S> formula;
  formula.params.alpha = static_cast<S>(values.number("alpha"));
  formula.params.beta = static_cast<S>(values.number("beta"));
  formula.params.base = static_cast<S>(values.number("base"));
  formula.params.epsilon = static_cast<S>(values.number("epsilon"));
  formula.params.mining = values.integer("mining") == 1;
  return formula;
}

}  // namespace

LossEntry multi_similarity_entry() {
  return {.name = "multi_similarity",
          .kind = LossKind::kEmbeddings,
          .summary = "soft sums over mined positive and negative pairs",
          .paper =
              "Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair "
              "Weighting, CVPR 2019; eq. 11-15",
          .parameters = {number_parameter("alpha", "2", 1e-3, 1e3, "sharpness of the positives"),
                         number_parameter("beta", "50", 1e-3, 1e3, "sharpness of the negatives"),
                         number_parameter("base", "0.5", -2, 2, "similarity to compare with"),
                         unless("mining=0",
                                number_parameter("epsilon", "0.1", 0, 4, "margin of the mining")),
                         integer_parameter("mining", 1, 0, 1, "0: keep all pairs")},
          .make_float = make_row_loss<float, make_multi_similarity<float>>,
          .make_double = make_row_loss<double, make_multi_similarity<double>>,
          .sigmoids = [](double columns, double) { return columns; }};
}

}  // namespace rk
