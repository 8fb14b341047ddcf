// Ranking (losses/scores/ranking.h) on a GPU, of one long ranking or of many at once
// (kernels/blocks/ranking_block.h).
#pragma once

#include "engine/device/context.h"
#include "kernels/blocks/ranking_block.h"

#include <cstdint>

namespace rk {

class GpuRanking {
 public:
  // For up to `count` scores; segmented: whether there may be more than one segment.
  void allocate(const Context& context, std::int64_t count, bool segmented);
  // Writes, or with input.accumulate adds to, `loss`: share * the sum over segments of 1 - AP.
  void rank(const Context& context, const RankingInput& input, double share, double* loss) const;
  std::int64_t bytes() const;

 private:
  template <class Key>
  void rank_with(const Context& context, const RankingInput& input, double share,
                 double* loss) const;

  Memory keys_[3], items_[3], above_, place_, values_, rests_, counts_, partial_, workspace_;
};

}  // namespace rk
