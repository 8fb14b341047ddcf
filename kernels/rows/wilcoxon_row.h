// The Wilcoxon statistic over hardest pairs (Gajic et al. 2022, eq. 11).  sg(x) = 1/(1 + exp(-rx)):
//   loss = 1 - 1/V^2 sum_i sum_j sg(f+_i - f-_j) = 1/V^2 sum_i sum_j sg(f-_j - f+_i)
// The latter form is computed: nothing cancels, however small the loss.
// f+_i and f-_i are the hardest pair of query i, V the number of queries.
// Every query is compared with every query: measure() finds a row's pair, WilcoxonPairs compares
// one query with all pairs, and row() writes the two slopes of a query to grad[0..pad(columns)),
// which may be the memory of in.scores.
#pragma once

#include "kernels/math.h"
#include "kernels/rows/hardest_pair.h"

namespace rk {

template <class S> struct WilcoxonRow {
  struct Params {
    S r = S(42.2);
    const S* slopes = nullptr;  // [rows, 2]: dLoss/df+, dLoss/df- of every query
  };

  using Pieces = HardestPairPieces;

  RK_BOTH static int stats(const Params&) { return 2; }
  RK_BOTH static int slopes(const Params&, int rows) { return 2 * rows; }
  static void place(Params& params, const S* slopes) { params.slopes = slopes; }

  // stats: f+, f-
  template <class Team>
  RK_FN static void measure(const Team& team, const Params& params, const GalleryRow<S> in,
                            S* stats, void* memory) {
    measure_hardest_pair<WilcoxonRow>(team, params, in, stats, memory);
  }
  template <class Team>
  RK_FN static void measure_pair(const Team& team, const Params&, const HardestPair<S> pair,
                                 S* stats) {
    team.for_each(1, [&](int) {
      stats[0] = pair.positive;
      stats[1] = pair.negative;
    });
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    hardest_pair_row<WilcoxonRow>(team, params, in, grad, loss, memory);
  }
  template <class Team>
  RK_FN static PairGradient<S> pair_gradient(const Team& team, const Params params,
                                             const HardestPair<S>&, const GalleryRow<S>& in,
                                             S* loss) {
    team.for_each(1, [&](int) { *loss = 0; });  // WilcoxonPairs computes it
    return {params.slopes[2 * in.self], params.slopes[2 * in.self + 1]};
  }
};

template <class S> struct WilcoxonPairs {
  // positive, negative: f+ and f- of the `count` queries that count. Writes, for query i, the sum
  // over j of sg(f-_j - f+_i) to value, and dLoss/df+_i and dLoss/df-_i to slope.
  template <class Team>
  RK_FN static void row(const Team& team, S r, const S* positive, const S* negative, int count,
                        int i, S* value, S* slope) {
    const S total = team.sum(count, [&](int j) {
      const S x = r * (negative[j] - positive[i]);
      const S u = half_sigmoid(x);
      return x < 0 ? u : 1 - u;
    });
    const S by_positive = team.sum(count, [&](int j) {
      const S u = half_sigmoid(r * (positive[i] - negative[j]));
      return u - u * u;
    });
    const S by_negative = team.sum(count, [&](int j) {
      const S u = half_sigmoid(r * (positive[j] - negative[i]));
      return u - u * u;
    });
    const S share = r / (static_cast<S>(count) * static_cast<S>(count));
    team.for_each(1, [&](int) {
      *value = total;
      slope[0] = -share * by_positive;
      slope[1] = share * by_negative;
    });
  }
};

}  // namespace rk
