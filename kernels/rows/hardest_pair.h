// The hardest pair of a query: its positive of lowest and its negative of highest score; ties go to
// the first in the batch. P and N must not be empty. Collective.
#pragma once

#include "kernels/rows/gallery_row.h"

#include <cstdint>
#include <limits>

namespace rk {

template <class S> struct HardestPair {
  S positive;  // scores
  S negative;
  int positive_column;
  int negative_column;
};

// The scratch of rows that need only this pair.
struct HardestPairPieces {
  RK_BOTH HardestPairPieces(Scratch scratch, int /*columns*/, int members)
      : index(scratch.take<int>(members)), bytes(scratch.bytes()) {}
  int* index;
  std::int64_t bytes;
};

// index[0..p): the positives, as gather_positives() finds them.
template <class Team, class S>
RK_FN HardestPair<S> hardest_pair(const Team& team, const GalleryRow<S>& in, const int* index,
                                  int p) {
  const auto positive = team.arg_max(p, [&](int j) { return -in.scores[index[j]]; });
  // Plain pointers and numbers: values behind a reference would be reloaded at every column, and
  // the search would take at least three times as long.
  const S* const scores = in.scores;
  const std::int32_t* const classes = in.classes;
  const std::int32_t own = classes[in.self];
  const auto negative = team.arg_max(in.columns, [=](int k) {
    const S score = scores[k];
    return classes[k] != own ? score : -std::numeric_limits<S>::infinity();
  });
  // If every positive's score is NaN, arg_max finds no index.
  const int lowest = positive.index < 0 ? 0 : positive.index;
  return {-positive.value, negative.value, index[lowest], negative.index};
}

// `index` is scratch of in.member_count.
template <class Team, class S>
RK_FN HardestPair<S> hardest_pair(const Team& team, const GalleryRow<S>& in, int* index) {
  const int p = gather_positives(team, in, index);
  return hardest_pair(team, in, index, p);
}

// dLoss/ds of a query whose loss depends on its hardest pair alone.
template <class S> struct PairGradient {
  S to_positive;
  S to_negative;
};

// The row() of a loss that depends on the hardest pair alone. Such a loss provides
//   PairGradient<S> Row::pair_gradient(team, params, pair, in, loss)
// which also writes the row's loss, and reads neither in.scores nor in.classes. On a GPU this
// writes the whole row of the gradient; all members have read their scores by then (arg_max ends
// with a barrier), so `grad` may be the memory of in.scores. The CPU makes no such row
// (losses/products/sparse_gradient.h).
template <class Row, class Team, class S>
RK_FN void hardest_pair_row(const Team& team, const typename Row::Params& params,
                            const GalleryRow<S>& in, S* grad, S* loss, void* memory) {
  const HardestPairPieces at(Scratch(memory), in.columns, in.member_count);
  const HardestPair<S> pair = hardest_pair(team, in, at.index);
  const PairGradient<S> gradient = Row::pair_gradient(team, params, pair, in, loss);
  team.for_each(pad(in.columns), [&](int k) {
    grad[k] = k == pair.positive_column   ? gradient.to_positive
              : k == pair.negative_column ? gradient.to_negative
                                          : S(0);
  });
}

// The measure() of such a loss if its rows are coupled; it provides Row::measure_pair(team, params,
// pair, stats).
template <class Row, class Team, class S>
RK_FN void measure_hardest_pair(const Team& team, const typename Row::Params& params,
                                const GalleryRow<S>& in, S* stats, void* memory) {
  const HardestPairPieces at(Scratch(memory), in.columns, in.member_count);
  Row::measure_pair(team, params, hardest_pair(team, in, at.index), stats);
}

}  // namespace rk
