// A query's part in the histogram loss (Ustinova and Lempitsky 2016, eq. 2-5).  Nodes t_r = -1 +
// 2r/bins, r = 0..bins; a score s, clamped to [-1, 1], gives max(0, 1 - |s - t_r| bins/2) to node
// r. A first pass writes the row's counts,
//   stats[r] of its positives, stats[bins + 1 + r] of its negatives,
// and the second, given rise[r] = the change of the loss per unit of s in (t_(r-1), t_r], writes
// dLoss/ds to grad[0..pad(columns)), which may be the memory of in.scores; 0 outside [-1, 1].
// Cost: (bins + 1) * columns soft counts.
#pragma once

#include "kernels/gallery_row.h"

#include <cmath>

namespace rk {

template <class S> struct HistogramRow {
  struct Params {
    int bins = 100;
    const S* rise = nullptr;           // [bins + 1], rise[0] for s = -1 itself
    const S* negative_rise = nullptr;  // [bins + 1]
  };

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, int columns, int members)
        : negative(scratch.take<S>(columns)),
          positive(scratch.take<S>(members)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    S* negative;  // place among the nodes, 0 to bins; kFar for columns that are no negatives
    S* positive;
    int* index;
    std::int64_t bytes;
  };

  RK_BOTH static std::int64_t scratch(int columns, int members) {
    return Pieces(Scratch(nullptr), columns, members).bytes;
  }

  template <class Team>
  RK_FN static void measure(const Team& team, const Params& params, const GalleryRow<S>& in,
                            S* stats, void* memory) {
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int p = place_all(team, params, in, at);
    const auto count = [](S place, int node) {
      const S inside = 1 - std::abs(place - static_cast<S>(node));
      return inside > 0 ? inside : S(0);
    };
    team.sums(params.bins + 1, pad(p), stats,
              [&](int node, int j) { return count(at.positive[j], node); });
    team.sums(params.bins + 1, pad(in.columns), stats + params.bins + 1,
              [&](int node, int k) { return count(at.negative[k], node); });
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params& params, const GalleryRow<S>& in, S* grad,
                        S* loss, void* memory) {
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int p = place_all(team, params, in, at);
    const auto slope = [](const S* rise, S score, S place) {
      const int node = static_cast<int>(std::ceil(place));
      return score < -1 || score > 1 ? S(0) : rise[node < 0 ? 0 : node];
    };
    team.for_each(p, [&](int j) {
      at.positive[j] = slope(params.rise, in.scores[at.index[j]], at.positive[j]);
    });
    team.sync();  // grad may lie where the scores were
    team.for_each(pad(in.columns), [&](int k) {
      grad[k] =
          in.is_negative(k) ? slope(params.negative_rise, in.scores[k], at.negative[k]) : S(0);
    });
    team.sync();
    team.for_each(p, [&](int j) { grad[at.index[j]] = at.positive[j]; });
    team.for_each(1, [&](int) { *loss = 0; });  // it is in the stats
  }

 private:
  static constexpr S kFar = -2;

  // Ends with a barrier.
  template <class Team>
  RK_FN static int place_all(const Team& team, const Params& params, const GalleryRow<S>& in,
                             const Pieces& at) {
    const S half = static_cast<S>(params.bins) / 2;
    const auto place = [&](S s) { return ((s < -1 ? S(-1) : s > 1 ? S(1) : s) + 1) * half; };
    const int p = gather_positives(team, in, false, at.index);
    team.for_each(pad(in.columns),
                  [&](int k) { at.negative[k] = in.is_negative(k) ? place(in.scores[k]) : kFar; });
    team.for_each(pad(p),
                  [&](int j) { at.positive[j] = j < p ? place(in.scores[at.index[j]]) : kFar; });
    team.sync();
    return p;
  }
};

}  // namespace rk
