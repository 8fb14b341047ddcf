// A query's part in the histogram loss (Ustinova and Lempitsky 2016, eq. 2-5).  Nodes t_r = -1 +
// 2r/bins, r = 0..bins; a score s, clamped to [-1, 1], gives max(0, 1 - |s - t_r| bins/2) to node
// r. A first pass writes the row's counts,
//   stats[r] of its positives, stats[bins + 1 + r] of its negatives,
// and the second, given rise[r] = the change of the loss per unit of s in (t_(r-1), t_r], writes
// dLoss/ds to grad[0..pad(columns)), which may be the memory of in.scores; 0 outside [-1, 1].
// Cost: (bins + 3) * columns maxima and sums.
#pragma once

#include "kernels/gallery_row.h"

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace rk {

template <class S> struct HistogramRow {
  struct Params {
    int bins = 100;
    const S* rise = nullptr;           // [bins + 1], rise[0] for s = -1 itself
    const S* negative_rise = nullptr;  // [bins + 1]

    // Of a score among the nodes, 0 to bins.
    RK_FN RK_INLINE S place(S s) const {
      return ((s < -1 ? S(-1) : s > 1 ? S(1) : s) + 1) * (static_cast<S>(bins) / 2);
    }
  };

  // Soft counts are taken in fixed point: with R_q = sum of max(x, q) over places x, hat functions
  // around node r add up to R_(r-1) - 2 R_r + R_(r+1), two operations a place and node. Whole
  // numbers lose nothing in the subtraction, wrap around harmlessly, and add up alike in any order.
  using Fixed = std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>;

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, const Params params, int columns, int members)
        : place(scratch.take<Fixed>(columns > members ? columns : members)),
          ramp(scratch.take<Fixed>(params.bins + 3)),
          positive(scratch.take<S>(members)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    Fixed* place;  // among the nodes, from 1 to bins + 1; 0: in no bin
    Fixed* ramp;   // R_q
    S* positive;
    int* index;
    std::int64_t bytes;
  };

  RK_BOTH static std::int64_t scratch(const Params params, int columns, int members) {
    return Pieces(Scratch(nullptr), params, columns, members).bytes;
  }

  template <class Team>
  RK_FN static void measure(const Team& team, const Params params, const GalleryRow<S> in, S* stats,
                            void* memory) {
    const Pieces at(Scratch(memory), params, in.columns, in.member_count);
    const int p = gather_positives(team, in, false, at.index);
    const S unit = static_cast<S>(Fixed{1} << fraction_bits(params));
    const auto fixed = [&](S s) {
      return static_cast<Fixed>((params.place(s) + 1) * unit + S(0.5));
    };
    team.for_each(pad(p),
                  [&](int j) { at.place[j] = j < p ? fixed(in.scores[at.index[j]]) : Fixed{0}; });
    count(team, params, at, pad(p), stats);
    team.for_each(pad(in.columns), [&](int k) {
      const bool counts = in.is_negative(k);
      const Fixed place = fixed(counts ? in.scores[k] : S(0));
      at.place[k] = counts ? place : Fixed{0};
    });
    count(team, params, at, pad(in.columns), stats + params.bins + 1);
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    const Pieces at(Scratch(memory), params, in.columns, in.member_count);
    const int p = gather_positives(team, in, false, at.index);
    const auto slope = [&](const S* rise, S score) {
      const int node = static_cast<int>(std::ceil(params.place(score)));
      return score < -1 || score > 1 ? S(0) : rise[node];
    };
    team.for_each(p, [&](int j) { at.positive[j] = slope(params.rise, in.scores[at.index[j]]); });
    team.sync();  // grad may lie where the scores were
    team.for_each(pad(in.columns), [&](int k) {
      const bool counts = in.is_negative(k);  // beyond the columns lies anything
      const S to_negative = slope(params.negative_rise, counts ? in.scores[k] : S(0));
      grad[k] = counts ? to_negative : S(0);
    });
    team.sync();
    team.for_each(p, [&](int j) { grad[at.index[j]] = at.positive[j]; });
    team.for_each(1, [&](int) {
      *loss = 0;  // it is in the stats
    });
  }

 private:
  static constexpr int kWidth = 8 * sizeof(Fixed) - 1;

  // A rounding below that of a score, as long as all nodes fit.
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
    // Few enough at a time that a count, unlike R, does not wrap around.
    const int most = 1 << (kWidth - bits);
    for (int first = 0; first < places; first += most) {
      const int group = places - first < most ? places - first : most;
      const Fixed* from =
          at.place + first;  // from[k] is a plain load, at.place[first + k] a gather
      team.sums(params.bins + 3, group, at.ramp, [&](int q, int k) {
        const Fixed node = static_cast<Fixed>(q) << bits;
        const Fixed place = from[k];
        return place > node ? place : node;
      });
      team.for_each(params.bins + 1, [&](int r) {
        const Fixed sum = at.ramp[r] - 2 * at.ramp[r + 1] + at.ramp[r + 2];
        stats[r] = (first == 0 ? S(0) : stats[r]) + static_cast<S>(sum) * share;
      });
    }
  }
};

}  // namespace rk
