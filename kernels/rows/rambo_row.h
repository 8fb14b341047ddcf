// Black-box differentiated ranks of one query (Rolinek et al. 2020).  n scores in the gallery;
//   v = s - margin/2 for positives, s + margin/2 for negatives
//   rank by (v descending, index ascending)
//   recall: loss = sum over j in P of w(negatives above j), w(r) = log(1+r) or log(1+log(1+r))
//   AP:     loss = 1 - mean over j in P of (rank among positives)/(rank), computed as the mean of
//           (negatives above j)/(rank)
// Backward, with g = dLoss/d(rank/n); the rank among positives is a constant, so g is 0 on
// negatives:
//   v' = v + lambda g;   dLoss/ds = (rank(v') - rank(v)) / (n lambda), subtracted as integers
// v' is never rounded: lambda g is kept beside v, and what is compared is the difference of the v
// and that of the steps, so that those of equal v come apart by any step. Only positives move, so a
// negative's rank changes by the positives that pass it, and nothing is sorted: |P| * (|P| +
// columns) comparisons. in.weight is dLoss/d(loss of the row) and is part of
// g. Writes the loss and, to grad[0..pad(columns)), dLoss/ds; `grad` may be the memory of
// in.scores.
#pragma once

#include "kernels/rows/gallery_row.h"

#include <cmath>
#include <limits>

namespace rk {

enum class Rambo { kRecallLog, kRecallLogLog, kAp };

template <class S> struct RamboRow {
  struct Params {
    Rambo variant = Rambo::kAp;
    S lambda = 4;
    S margin = S(0.02);
  };

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, int columns, int members)
        : negative(scratch.take<S>(columns)),
          before(scratch.take<S>(members)),
          step(scratch.take<S>(members)),
          change(scratch.take<S>(members)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    S* negative;  // v of negatives, -infinity elsewhere: above nothing
    S* before;    // v of positives
    S* step;      // v' - v of positives
    S* change;    // rank(v') - rank(v) of positives
    int* index;
    std::int64_t bytes;
  };

  static std::int64_t work(std::int64_t columns, std::int64_t positives) {
    return 2 * positives * (positives + columns);
  }

  // 1 where item i ranks before item j, whose value lies `less` below its own.
  RK_FN RK_INLINE static S above(S less, int i, int j) {
    return less > 0 || (less == 0 && i < j) ? S(1) : S(0);
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    constexpr S kNever = -std::numeric_limits<S>::infinity();
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int p = gather_positives(team, in, false, at.index);
    const int columns = pad(in.columns);
    const int width = in.negatives() > 0 ? columns : 0;
    const S length = static_cast<S>(p + in.negatives());
    const S half = params.margin / 2;

    team.for_each(
        width, [&](int k) { at.negative[k] = in.is_negative(k) ? in.scores[k] + half : kNever; });
    team.for_each(p, [&](int j) { at.before[j] = in.scores[at.index[j]] - half; });
    team.sync();  // grad may lie where the scores were
    team.for_each(columns, [&](int k) { grad[k] = 0; });

    S total = 0;
    for (int j = 0; j < p; ++j) {
      const S v = at.before[j];
      const int own = at.index[j];
      const S negatives = team.sum(width, [&](int k) { return above(at.negative[k] - v, k, own); });
      const S others =
          team.sum(p, [&](int i) { return above(at.before[i] - v, at.index[i], own); });
      S g = 0;
      if (params.variant == Rambo::kAp) {
        const S rank = 1 + others + negatives;
        total += negatives / rank;
        // The quotient first, in whole numbers: equal ones stay equal, and their items tied.
        const double places = static_cast<double>(1 + others) * static_cast<double>(length);
        const double square = static_cast<double>(rank) * static_cast<double>(rank);
        g = static_cast<S>(places / square) * (in.weight / static_cast<S>(p));
      } else {
        const S inner = std::log1p(negatives);
        const bool twice = params.variant == Rambo::kRecallLogLog;
        total += twice ? std::log1p(inner) : inner;
        g = in.weight * length / ((1 + negatives) * (twice ? 1 + inner : S(1)));
      }
      team.for_each(1, [&](int) {
        at.step[j] = params.lambda * g;
        at.change[j] = -negatives - others;
      });
    }
    team.sync();
    const S scale = 1 / (length * params.lambda);
    for (int j = 0; j < p; ++j) {
      const S v = at.before[j];
      const S step = at.step[j];
      const int own = at.index[j];
      const S negatives = team.sum(width, [&](int k) {
        const S less = v - at.negative[k];
        const S passed = above(less + step, own, k) - above(less, own, k);
        grad[k] += at.negative[k] == kNever ? S(0) : passed * scale;
        return above(-less - step, k, own);
      });
      const S others = team.sum(p, [&](int i) {
        return above((at.before[i] - v) + (at.step[i] - step), at.index[i], own);
      });
      team.for_each(1, [&](int) { at.change[j] += negatives + others; });
    }
    team.sync();
    team.for_each(p, [&](int j) { grad[at.index[j]] = at.change[j] * scale; });
    team.for_each(
        1, [&](int) { *loss = params.variant == Rambo::kAp ? total / static_cast<S>(p) : total; });
  }
};

}  // namespace rk
