// FastAP of one query (Cakir et al. 2019, eq. 14, gradient eq. 22-23).
//   z = clamp(2 - 2s, 0, 4), L bins of width Delta = 4/L, centres c_l = l Delta, l = 0..L
//   soft counts d(z, c) = max(0, 1 - |z - c|/Delta):  h+_l over P, h_l over P and N
//   loss = 1 - 1/|P| sum_l h+_l H+_l / H_l,  H+ and H the running sums; a term is 0 where H_l = 0
// A positive's soft counts add up to 1, so loss = 1/|P| sum_l h+_l (H_l - H+_l) / H_l. The kernel
// computes this form: H - H+ is the negatives' running sum, so nothing cancels, however small the
// loss.
// Derivative of d in z: +1/Delta on (c - Delta, c], -1/Delta on (c, c + Delta]; of the clamp: 1 on
// [0, 4].
// Writes the loss and, to grad[0..pad(columns)), weight * dloss/ds; 0 outside P and N. `grad` may
// be the memory of in.scores. P must not be empty. Cost: (L + 1) * columns soft counts, O(L) for
// the gradient's factors.
#pragma once

#include "kernels/rows/gallery_row.h"

#include <cmath>
#include <cstdint>

namespace rk {

template <class S> struct FastApRow {
  struct Params {
    int bins = 10;
  };

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, const Params params, int columns, int members)
        : distance(scratch.take<S>(columns)),
          positive(scratch.take<S>(members)),
          count(scratch.take<S>(params.bins + 1)),
          positive_count(scratch.take<S>(params.bins + 1)),
          slope(scratch.take<S>(params.bins + 1)),
          positive_slope(scratch.take<S>(params.bins + 1)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    S* distance;        // z/Delta of negatives, kFar elsewhere
    S* positive;        // z/Delta of positives
    S* count;           // h_l of N alone, then their running sum H_l - H+_l
    S* positive_count;  // h+_l
    S* slope;           // [l]: Delta * d(FastAP)/dz of a negative with c_(l-1) < z <= c_l
    S* positive_slope;
    int* index;
    std::int64_t bytes;
  };

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    constexpr S kFar = -2;  // a column there falls into no bin
    const Pieces at(Scratch(memory), params, in.columns, in.member_count);
    const int bins = params.bins;
    const S per_width = static_cast<S>(bins) / 4;
    const int p = gather_positives(team, in, at.index);
    const int columns = pad(in.columns);
    const int positives = pad(p);

    const auto place = [&](S score) {
      const S z = 2 - 2 * score;
      return (z < 0 ? S(0) : z > 4 ? S(4) : z) * per_width;
    };
    team.for_each(columns,
                  [&](int k) { at.distance[k] = in.is_negative(k) ? place(in.scores[k]) : kFar; });
    team.for_each(positives,
                  [&](int k) { at.positive[k] = k < p ? place(in.scores[at.index[k]]) : kFar; });
    const auto soft_count = [](S distance, int bin) {
      const S inside = 1 - std::abs(distance - static_cast<S>(bin));
      return inside > 0 ? inside : S(0);
    };
    team.sums(bins + 1, columns, at.count,
              [&](int bin, int k) { return soft_count(at.distance[k], bin); });
    team.sums(bins + 1, positives, at.positive_count,
              [&](int bin, int k) { return soft_count(at.positive[k], bin); });
    team.for_each(1, [&](int) { add_up(bins, at); });
    team.sync();
    // Divisions are shared among the members: on a GPU one after the other they take longer than
    // the counts, above all those of 0.
    const S share = S(1) / static_cast<S>(p);
    team.for_each(bins + 1, [&](int l) {
      const S total = at.count[l] + at.slope[l];
      const bool any = total > 0;
      const S ratio = at.slope[l] / total;
      const S a = share * at.positive_count[l] / total;
      at.count[l] = any ? at.count[l] : S(0);
      at.slope[l] = any ? ratio : S(0);
      at.positive_count[l] = any ? a : S(0);
    });
    team.sync();
    team.for_each(1, [&](int) { *loss = bins_backward(bins, share, at); });
    team.sync();
    const S scale = in.weight * 2 * per_width;  // loss = 1 - FastAP, dz/ds = -2
    const auto grad_of = [&](const S* slope, S score, S distance) {
      const S z = 2 - 2 * score;
      if (z < 0 || z > 4) return S(0);
      return scale * slope[distance > 0 ? static_cast<int>(std::ceil(distance)) : 0];
    };
    // `grad` may be the memory of the scores: the member that writes grad[k] has read scores[k].
    team.for_each(p, [&](int k) {
      at.positive[k] = grad_of(at.positive_slope, in.scores[at.index[k]], at.positive[k]);
    });
    team.sync();
    team.for_each(columns, [&](int k) {
      grad[k] = in.is_negative(k) ? grad_of(at.slope, in.scores[k], at.distance[k]) : S(0);
    });
    team.sync();
    team.for_each(p, [&](int k) { grad[at.index[k]] = at.positive[k]; });
  }

 private:
  // Counts become running sums: at.count H_l - H+_l, at.slope H+_l.
  RK_FN static void add_up(int bins, const Pieces& at) {
    S negative_total = 0;
    S positive_total = 0;
    for (int l = 0; l <= bins; ++l) {
      negative_total += at.count[l];
      positive_total += at.positive_count[l];
      at.count[l] = negative_total;
      at.slope[l] = positive_total;
    }
  }

  // The row's loss, and the slopes, from H_l - H+_l, ratio_l = H+_l / H_l (in at.slope) and a_l =
  // 1/p h+_l / H_l (in at.positive_count), which are 0 where H_l = 0. With F = 1 - loss:
  //   dF/dh_l  = -sum over q >= l of a_q H+_q / H_q            (for a negative in bin l)
  //   dF/dh+_l = 1/p H+_l / H_l + sum over q >= l of a_q       (for a positive: the sum of both)
  RK_FN static S bins_backward(int bins, S share, const Pieces& at) {
    S lost = 0;
    S negative_suffix = 0;
    S positive_suffix = 0;
    S next = 0;
    S positive_next = 0;
    for (int l = bins; l >= 0; --l) {
      const S ratio = at.slope[l];
      const S a = at.positive_count[l];
      lost += a * at.count[l];
      negative_suffix -= a * ratio;
      positive_suffix += a;
      const S here = negative_suffix;
      const S positive_here = negative_suffix + positive_suffix + share * ratio;
      // Between c_(l) and c_(l+1): falls from bin l, rises into bin l + 1.
      if (l < bins) {
        at.slope[l + 1] = next - here;
        at.positive_slope[l + 1] = positive_next - positive_here;
      }
      next = here;
      positive_next = positive_here;
    }
    at.slope[0] = next;  // z = 0: on the rising side of bin 0
    at.positive_slope[0] = positive_next;
    return lost;
  }
};

}  // namespace rk
