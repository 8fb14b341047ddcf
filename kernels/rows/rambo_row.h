// Black-box differentiated ranks of one query (Rolinek et al. 2020).  n scores in the gallery;
//   v = s - margin/2 for positives, s + margin/2 for negatives
//   rank by (v descending, index ascending)
//   recall: loss = sum or mean over j in P of w(negatives above j), w(r) = log(1+r) or
//           log(1+log(1+r))
//   AP:     loss = 1 - mean over j in P of (rank among positives)/(rank), computed as the mean of
//           (negatives above j)/(rank)
// Backward, with g = dLoss/d(rank/n); the rank among positives is a constant, so g is 0 on
// negatives:
//   v' = v + lambda g;   dLoss/ds = (rank(v') - rank(v)) / (n lambda), subtracted as integers
// Only positives move, so a negative's rank changes by the positives that pass it, and nothing is
// sorted: |P| * (|P| + columns) comparisons. Everything but the scores is double, whatever S is:
// positives of equal score move by amounts that differ by far less than the rounding of float, and
// this difference alone decides their new order. Changes of rank are summed as whole numbers, which
// float holds up to 2^24. Writes the loss and, to grad[0..pad(columns)),
// dLoss/ds; `grad` may be the memory of in.scores.
#pragma once

#include "kernels/rows/gallery_row.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace rk {

enum class Rambo { kRecallLog, kRecallLogLog, kAp };

template <class S> struct RamboRow {
  struct Params {
    Rambo variant = Rambo::kAp;
    bool mean = true;  // over the positives, instead of their sum; AP is one
    double lambda = 4;
    double margin = 0.02;
    // dLoss/d(loss of a row), in place of GalleryRow::weight: in double, so that equal positives
    // have equal gradients.
    double share = 1;
  };

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, int columns, int members)
        : negative(scratch.take<double>(columns)),
          before(scratch.take<double>(members)),
          after(scratch.take<double>(members)),
          change(scratch.take<double>(members)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    double* negative;  // v of negatives, -infinity elsewhere: above nothing
    double* before;    // v of positives
    double* after;     // v' of positives
    double* change;    // rank(v') - rank(v) of positives
    int* index;
    std::int64_t bytes;
  };

  static std::int64_t work(std::int64_t columns, std::int64_t positives) {
    return 2 * positives * (positives + columns);
  }

  // 1 where item a at index i ranks before item b at index j.
  RK_FN RK_INLINE static double above(double a, int i, double b, int j) {
    return a > b || (a == b && i < j) ? 1.0 : 0.0;
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int p = gather_positives(team, in, at.index);
    const int columns = pad(in.columns);
    const int width = in.negatives() > 0 ? columns : 0;
    const auto length = static_cast<double>(p + in.negatives());
    const double half = params.margin / 2;

    team.for_each(width, [&](int k) {
      const auto s = static_cast<double>(in.scores[k]);
      at.negative[k] = in.is_negative(k) ? s + half : kNever;
    });
    team.for_each(
        p, [&](int j) { at.before[j] = static_cast<double>(in.scores[at.index[j]]) - half; });
    team.sync();  // grad may be the memory of in.scores
    team.for_each(columns, [&](int k) { grad[k] = 0; });

    double total = 0;
    for (int j = 0; j < p; ++j) {
      const double v = at.before[j];
      const int own = at.index[j];
      const double negatives =
          team.sum(width, [&](int k) { return above(at.negative[k], k, v, own); });
      const double others =
          team.sum(p, [&](int i) { return above(at.before[i], at.index[i], v, own); });
      double g = 0;
      if (params.variant == Rambo::kAp) {
        const double rank = 1 + others + negatives;
        total += negatives / rank;
        // A quotient of whole numbers, so that equal values are bitwise equal and items stay tied.
        g = (1 + others) * length / (rank * rank) * (params.share / p);
      } else {
        const double inner = std::log1p(negatives);
        const bool twice = params.variant == Rambo::kRecallLogLog;
        total += twice ? std::log1p(inner) : inner;
        const int each = params.mean ? p : 1;
        g = params.share * length / ((1 + negatives) * (twice ? 1 + inner : 1.0) * each);
      }
      team.for_each(1, [&](int) {
        at.after[j] = v + params.lambda * g;
        at.change[j] = -negatives - others;
      });
    }
    team.sync();
    for (int j = 0; j < p; ++j) {
      const double v = at.before[j];
      const double moved = at.after[j];
      const int own = at.index[j];
      const double negatives = team.sum(width, [&](int k) {
        const double negative = at.negative[k];
        const double passed = above(moved, own, negative, k) - above(v, own, negative, k);
        grad[k] += negative == kNever ? S(0) : static_cast<S>(passed);
        return above(negative, k, moved, own);
      });
      const double others =
          team.sum(p, [&](int i) { return above(at.after[i], at.index[i], moved, own); });
      team.for_each(1, [&](int) { at.change[j] += negatives + others; });
    }
    // The last sum ended with a barrier, so that all changes are in grad.
    const double scale = 1 / (length * params.lambda);
    team.for_each(width,
                  [&](int k) { grad[k] = static_cast<S>(static_cast<double>(grad[k]) * scale); });
    team.sync();
    team.for_each(p, [&](int j) { grad[at.index[j]] = static_cast<S>(at.change[j] * scale); });
    team.for_each(1, [&](int) { *loss = static_cast<S>(params.mean ? total / p : total); });
  }
};

}  // namespace rk
