// Where a score stands among all positive scores, for the AUC of any number of pairs: the positives
// in ascending order, and a table of cells of equal width over their range that tells where each
// cell's scores begin, so that a search looks at the few of one cell.
#pragma once

#include "kernels/team.h"

#include <cstdint>

namespace rk {

struct ScoreOrder {
  const float* sorted = nullptr;         // [count]
  const std::uint32_t* first = nullptr;  // [cells + 1]: how many scores lie in the cells before
  std::uint32_t count = 0;               // below 2^31
  std::int32_t cells = 1;
  float lowest = 0;
  float scale = 0;  // cells / (highest - lowest)

  // Never decreases with the score, so that a cell's scores are one run of `sorted`.
  RK_FN RK_INLINE std::int32_t cell_of(float score) const {
    const float at = (score - lowest) * scale;
    const float above = at > 0 ? at : 0.0F;  // 0 for NaN, too: an infinite difference times scale 0
    return above < static_cast<float>(cells) - 1 ? static_cast<std::int32_t>(above) : cells - 1;
  }

  // 2 x (positives that score higher) + (positives that score equally).
  RK_FN RK_INLINE std::uint32_t twice_wins(float score) const {
    const std::int32_t cell = cell_of(score);
    const std::uint32_t end = first[cell + 1];
    const std::uint32_t below =
        partition(first[cell], end, [&](float positive) { return positive < score; });
    const bool equal = below < end && sorted[below] == score;
    const std::uint32_t reached =
        equal ? partition(below, end, [&](float positive) { return positive <= score; }) : below;
    return 2 * count - below - reached;
  }

 private:
  // The first index of [begin, end) whose score is not `lower`.
  template <class Lower>
  RK_FN RK_INLINE std::uint32_t partition(std::uint32_t begin, std::uint32_t end,
                                          Lower&& lower) const {
    while (begin < end) {
      const std::uint32_t middle = begin + (end - begin) / 2;
      if (lower(sorted[middle])) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin;
  }
};

}  // namespace rk
