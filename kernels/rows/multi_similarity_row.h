// Multi-similarity loss of one query (Wang et al. 2019, eq. 11-13).  m = min over P of s, M = max
// over N of s; mining keeps positives with s - epsilon < M and negatives with s + epsilon > m; then
//   loss = log(1 + sum exp(-alpha (s - base)))/alpha + log(1 + sum exp(beta (s - base)))/beta
// and 0 if mining keeps nothing (it keeps positives if and only if it keeps negatives). The choice
// has no gradient. Writes the loss and, to grad[0..pad(columns)), weight * dloss/ds; `grad` may be
// the memory of in.scores. P and N must not be empty. Cost: columns exponentials, largest exponent
// subtracted.
#pragma once

#include "kernels/math.h"
#include "kernels/rows/hardest_pair.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace rk {

template <class S> struct MultiSimilarityRow {
  struct Params {
    S alpha = 2;
    S beta = 50;
    S base = S(0.5);
    S epsilon = S(0.1);
    bool mining = true;
  };

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, int columns, int members)
        : negative(scratch.take<S>(columns)),
          positive(scratch.take<S>(members)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    S* negative;  // exp(beta (s - base) - largest) of those kept, else 0
    S* positive;
    int* index;
    std::int64_t bytes;
  };

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int columns = pad(in.columns);
    const int p = gather_positives(team, in, at.index);
    const HardestPair<S> hardest = hardest_pair(team, in, at.index, p);
    const S m = hardest.positive;
    const S most = hardest.negative;
    const bool any = !params.mining || m - params.epsilon < most;
    // If any are kept, the hardest ones are, and they have the largest exponents. What is kept is
    // compared with the very numbers of this test: s + epsilon > m may round to the other side.
    const S exponent = -params.alpha * (m - params.base);
    const S shift = any && exponent > 0 ? exponent : S(0);
    const S negative_exponent = params.beta * (most - params.base);
    const S negative_shift = any && negative_exponent > 0 ? negative_exponent : S(0);

    // Which ones are kept, without a branch in the loops: positives below, negatives above.
    constexpr S kAll = std::numeric_limits<S>::infinity();
    const S below = !any ? -kAll : params.mining ? most : kAll;
    const S above = !any ? kAll : params.mining ? m - params.epsilon : -kAll;
    const S positives = team.sum(p, [&](int j) {
      const S s = in.scores[at.index[j]];
      const bool kept = s - params.epsilon < below;
      return at.positive[j] =
                 exp_negative(kept ? -params.alpha * (s - params.base) - shift : -kAll);
    });
    team.for_each(columns, [&](int k) {
      const bool kept = in.is_negative(k) && in.scores[k] > above;
      at.negative[k] = kept ? params.beta * (in.scores[k] - params.base) - negative_shift : -kAll;
    });
    const S negatives =
        team.sum(columns, [&](int k) { return at.negative[k] = exp_negative(at.negative[k]); });
    const S scale = in.weight / (std::exp(-shift) + positives);
    const S negative_scale = in.weight / (std::exp(-negative_shift) + negatives);
    team.for_each(columns, [&](int k) { grad[k] = negative_scale * at.negative[k]; });
    team.sync();
    team.for_each(p, [&](int j) { grad[at.index[j]] = -scale * at.positive[j]; });
    team.for_each(1, [&](int) {
      *loss = log1p_scaled(shift, positives) / params.alpha +
              log1p_scaled(negative_shift, negatives) / params.beta;
    });
  }
};

}  // namespace rk
