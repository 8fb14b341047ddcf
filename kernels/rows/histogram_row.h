// A query's part in the histogram loss (Ustinova and Lempitsky 2016, eq. 2-5).  Nodes t_r = -1 +
// 2r/bins, r = 0..bins; a score s, clamped to [-1, 1], gives max(0, 1 - |s - t_r| bins/2) to node
// r. A first pass writes the row's counts,
//   stats[r] of its positives, stats[bins + 1 + r] of its negatives,
// and the second, given rise[r] = the change of the loss per unit of s in (t_(r-1), t_r], writes
// dLoss/ds to grad[0..pad(columns)), which may be the memory of in.scores; 0 outside [-1, 1].
// Cost: a maximum and an addition per pair and node between the row's least and largest score.
#pragma once

#include "kernels/rows/batch_numbers.h"
#include "kernels/rows/gallery_row.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace rk {

template <class S> struct HistogramRow {
  struct Params {
    int bins = 100;
    const S* rise = nullptr;           // [bins + 1], rise[0] for s = -1 itself
    const S* negative_rise = nullptr;  // [bins + 1]

    // Position of a score among the nodes, 0 to bins.
    RK_FN RK_INLINE S place(S s) const {
      const S above = s < -1 ? S(-1) : s;
      const S within = above > 1 ? S(1) : above;
      return (within + 1) * (static_cast<S>(bins) / 2);
    }
  };

  // Soft counts are computed in fixed point: with R_q = sum of max(x, q) over places x, the hat
  // functions around node r add up to R_(r-1) - 2 R_r + R_(r+1), two operations per place and node.
  // Integers lose nothing in the subtraction, wrap around harmlessly, and have the same sum in any
  // order.
  using Fixed = std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>;

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, const Params params, int columns, int members)
        : place(scratch.take<Fixed>(columns > members ? columns : members)),
          ramp(scratch.take<Fixed>(params.bins + 3)),
          positive(scratch.take<S>(members)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    Fixed* place;  // 1 + the position among the nodes, from 1 to bins + 1; 0: in no bin
    Fixed* ramp;   // R_q
    S* positive;
    int* index;
    std::int64_t bytes;
  };

  template <class Team>
  RK_FN static void measure(const Team& team, const Params params, const GalleryRow<S> in, S* stats,
                            void* memory) {
    const Pieces at(Scratch(memory), params, in.columns, in.member_count);
    const int p = gather_positives(team, in, at.index);
    const S unit = static_cast<S>(Fixed{1} << fraction_bits(params));
    using Whole = std::make_signed_t<Fixed>;
    const auto fixed = [=](S s) {
      const S place = params.place(s) + 1;
      return static_cast<Whole>((place > 0 ? place : S(0)) * unit + S(0.5));  // NaN: in no bin
    };
    team.for_each(pad(p), [&](int j) {
      at.place[j] = static_cast<Fixed>(j < p ? fixed(in.scores[at.index[j]]) : 0);
    });
    count(team, params, at, pad(p), stats);
    team.for_each(pad(in.columns), [&](int k) {
      const Whole place = fixed(in.scores[k]);  // the padding may hold anything
      at.place[k] = static_cast<Fixed>(in.is_negative(k) ? place : 0);
    });
    count(team, params, at, pad(in.columns), stats + params.bins + 1);
  }

  RK_BOTH static int stats(const Params& params) { return 2 * (params.bins + 1); }
  RK_BOTH static int slopes(const Params& params, int) { return stats(params); }
  static void place(Params& params, const S* slopes) {
    params.rise = slopes;
    params.negative_rise = slopes + params.bins + 1;
  }
  // loss = the sum over nodes of h- H+, with h+ and h- the shares of all pairs, H+ the running sum.
  template <class Team>
  RK_FN static void finish(const Team& team, const BatchNumbers& batch, const double* totals,
                           Params* params, S* slopes, double* loss) {
    const int nodes = params->bins + 1;
    const double* negative = totals + nodes;
    const double per_positive = 1 / batch.positive_pairs;
    const double per_negative = 1 / batch.negative_pairs;
    const double per_unit = params->bins / 2.0;  // nodes per unit of similarity
    team.for_each(nodes, [&](int r) {
      // dLoss/dh-_r is H+_r: a negative that moves up to node r adds h+_r.
      slopes[nodes + r] = static_cast<S>(totals[r] * per_positive * per_negative * per_unit);
      // dLoss/dh+_r is the sum of h- from r on: a positive that moves up to node r loses h-_(r-1).
      // It enters node 0 from outside, where it counts for nothing, so there it adds the sum, 1.
      slopes[r] = r == 0
                      ? static_cast<S>(per_positive * per_unit)
                      : static_cast<S>(-negative[r - 1] * per_negative * per_positive * per_unit);
    });
    team.for_each(1, [&](int) {
      double running = 0;
      double total = 0;
      for (int r = 0; r < nodes; ++r) {
        running += totals[r] * per_positive;
        total += negative[r] * per_negative * running;
      }
      *loss = total;
    });
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    const Pieces at(Scratch(memory), params, in.columns, in.member_count);
    const int p = gather_positives(team, in, at.index);
    // Multiplies by 0 or 1: a load under a condition would keep the loop from being vectorised.
    const auto slope = [=](const S* rise, S score, bool counts) {
      const bool rises = std::abs(score) <= 1;  // the padding may hold anything
      const S node = std::ceil(params.place(rises ? score : S(0)));  // NaN must not become an index
      return (rises && counts ? S(1) : S(0)) * rise[static_cast<int>(node)];
    };
    team.for_each(
        p, [&](int j) { at.positive[j] = slope(params.rise, in.scores[at.index[j]], true); });
    team.sync();  // grad may be the memory of in.scores
    team.for_each(pad(in.columns), [&](int k) {
      grad[k] = slope(params.negative_rise, in.scores[k], in.is_negative(k));
    });
    team.sync();
    team.for_each(p, [&](int j) { grad[at.index[j]] = at.positive[j]; });
    team.for_each(1, [&](int) {
      *loss = 0;  // finish() has computed it from the stats
    });
  }

 private:
  static constexpr int kWidth = 8 * sizeof(Fixed) - 1;

  // Bits behind the point: finer than the rounding of a score, as long as all nodes fit.
  RK_FN static int fraction_bits(const Params& params) {
    int bits = sizeof(S) == 4 ? 20 : 40;
    while ((params.bins + 3) >> (kWidth - bits) != 0) --bits;
    return bits;
  }

  // stats[r] = the sum of the hat functions at `places` places.
  template <class Team>
  RK_FN static void count(const Team& team, const Params params, const Pieces& at, int places,
                          S* stats) {
    const int bits = fraction_bits(params);
    const S share = 1 / static_cast<S>(Fixed{1} << bits);
    // A place x contributes to the nodes r with x - 2 < r < x; other nodes need no sum.
    constexpr S kNone = -std::numeric_limits<S>::infinity();
    const Fixed* const place = at.place;
    const S highest =
        team.arg_max(places, [=](int k) { return static_cast<S>(place[k] >> bits); }).value;
    const int largest =
        highest > 0 ? static_cast<int>(highest) : 0;  // -infinity if there are no places
    const S least = -team.arg_max(places,
                                  [=](int k) {
                                    const S whole = static_cast<S>(place[k] >> bits);
                                    return whole == 0 ? kNone : -whole;
                                  })
                         .value;
    const int nodes = params.bins + 1;
    const int past = largest + 1;
    const int end = largest > 0 && past < nodes ? past : nodes;
    const int begin = largest > 0 ? static_cast<int>(least) - 1 : nodes;
    const int count = end - begin;
    team.for_each(begin, [&](int r) { stats[r] = 0; });
    team.for_each(nodes - end, [&](int r) { stats[end + r] = 0; });
    // So few places at a time that a count, unlike R, does not wrap around.
    const int most = 1 << (kWidth - bits);
    for (int first = 0; first < places && count > 0; first += most) {
      const int group = places - first < most ? places - first : most;
      const Fixed* const from =
          place + first;  // from[k] is a plain load, place[first + k] a gather
      team.sums(count + 2, group, at.ramp, [=](int q, int k) {
        const Fixed node = static_cast<Fixed>(begin + q) << bits;
        return from[k] > node ? from[k] : node;
      });
      team.for_each(count, [&](int r) {
        const Fixed sum = at.ramp[r] - 2 * at.ramp[r + 1] + at.ramp[r + 2];
        stats[begin + r] = (first == 0 ? S(0) : stats[begin + r]) + static_cast<S>(sum) * share;
      });
    }
  }
};

}  // namespace rk
