// Ranking (losses/scores/ranking.h) on a GPU, of one long ranking or of many at once
// (kernels/blocks/ranking_block.h).
#pragma once

#include "engine/device/context.h"
#include "kernels/blocks/ranking_block.h"

#include <cstdint>

namespace rk {

class DeviceRanking {
 public:
  // The input and output of one call; pointers to device memory, as in RankingArrays.
  struct Batch {
    std::int64_t items = 0;
    std::int64_t segments = 0;
    std::int64_t positives = 0;
    double lambda = 0;
    double margin = 0;
    double weight = 0;
    const float* scores = nullptr;
    const std::uint8_t* targets = nullptr;
    const std::uint32_t* own = nullptr;
    float* grad = nullptr;
    // Whether to add to grad, and to loss = share * the sum over segments of 1 - AP, instead of
    // overwriting them.
    bool accumulate = false;
    double share = 0;
    double* loss = nullptr;
  };

  // For up to `count` scores; segmented: whether there may be more than one segment.
  void allocate(const Context& context, std::int64_t count, bool segmented);
  void launch(const Context& context, const Batch& batch) const;
  std::int64_t bytes() const;

 private:
  template <class Key> void launch_with(const Context& context, const Batch& batch) const;

  Memory keys_[3], items_[3], above_, place_, values_, rests_, counts_, partial_, workspace_;
};

}  // namespace rk
