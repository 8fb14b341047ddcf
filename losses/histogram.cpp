#include "losses/histogram.h"

#include "kernels/histogram_row.h"
#include "losses/row_loss.h"

namespace rk {
namespace {

template <class S> struct Histogram : MeanOverQueriesWithNegative<S> {
  using Row = HistogramRow<S>;
  typename Row::Params params;
  std::vector<S> rises;

  std::int64_t scratch(int columns, int members) const {
    return Row::scratch(params, columns, members);
  }
  // All pairs count, whether or not their query has both kinds.
  bool counts(const BatchIndex&, int) const { return true; }
  int stats() const { return 2 * (params.bins + 1); }
  void plan(const LossShape&) {
    rises.resize(static_cast<std::size_t>(stats()));
    params.rise = rises.data();
    params.negative_rise = rises.data() + params.bins + 1;
  }

  double finish(const Context&, const BatchIndex& index, const double* totals, const S*) {
    const int nodes = params.bins + 1;
    const double* negative = totals + nodes;
    const double per_positive = 1 / static_cast<double>(index.positive_pairs());
    const double per_negative = 1 / static_cast<double>(index.negative_pairs());
    const double per_unit = params.bins / 2.0;  // nodes per unit of similarity
    double loss = 0;
    double running = 0;  // H+_r; the derivative by h-_r
    double before = 0;
    for (int r = 0; r < nodes; ++r) {
      running += totals[r] * per_positive;
      loss += negative[r] * per_negative * running;
      rises[static_cast<std::size_t>(nodes + r)] =
          static_cast<S>((running - before) * per_negative * per_unit);
      before = running;
    }
    // The derivative by h+_r is the sum of h- from r on: a step up loses what lies at r - 1.
    for (int r = 1; r < nodes; ++r) {
      rises[static_cast<std::size_t>(r)] =
          static_cast<S>(-negative[r - 1] * per_negative * per_positive * per_unit);
    }
    rises[0] = static_cast<S>(per_positive * per_unit);  // into node 0: from nothing
    return loss;
  }
};

template <class S> std::unique_ptr<Loss<S>> make(const LossValues& values) {
  Histogram<S> formula;
  formula.params.bins = values.integer("bins");
  return std::make_unique<RowLoss<S, Histogram<S>>>(formula);
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
          .make_float = make<float>,
          .make_double = make<double>};
}

}  // namespace rk
