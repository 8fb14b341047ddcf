// Histogram loss, Ustinova and Lempitsky 2016 (counts: kernels/rows/histogram_row.h): the
// probability that a negative pair is more similar than a positive one, sum over r of h-_r H+_r,
// with h+ over all ordered positive pairs, h- over all negative ones, H+ the running sum of h+; 0
// if no query has both kinds.
#include "kernels/rows/histogram_row.h"
#include "losses/entries.h"
#include "losses/rows/row_loss.h"

namespace rk {
namespace {

template <class S> struct Histogram : MeanOverQueriesWithNegative<S> {
  using Row = HistogramRow<S>;
  typename Row::Params params;
  // All pairs count, whether or not their query has both kinds.
  bool counts(const BatchIndex&, int) const override { return true; }
};

template <class S> Histogram<S> make_histogram(const LossValues& values) {
  Histogram<S> formula;
  formula.params.bins = values.integer("bins");
  return formula;
}

}  // namespace

LossEntry histogram_entry() {
  return {.name = "histogram",
          .kind = LossKind::kEmbeddings,
          .summary = "probability that a negative pair is more similar than a positive one",
          .paper =
              "Ustinova, Lempitsky: Learning Deep Embeddings with Histogram Loss, NIPS 2016; "
              "eq. 2-5",
          .parameters = {integer_parameter("bins", 100, 1, 4096, "bins over [-1, 1]")},
          .make_float = make_row_loss<float, make_histogram<float>>,
          .make_double = make_row_loss<double, make_histogram<double>>};
}

}  // namespace rk
