// How far two tensors on a GPU differ, for comparing two ways of computing the same result.
//
//   partial[b] = { max |a - b|, max |b| } over a block's share; a non-finite difference counts as
//   infinite, so that the maximum does not drop a NaN
//
// Bytes moved: each tensor once, b twice.
#pragma once

#include "kernels/block_team.h"
#include "kernels/element.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rk {

// partial: float [blocks(), 2].
template <class T> struct LargestDifference {
  static constexpr int kBlocks = 1024;

  std::int64_t count = 0;
  const T* a = nullptr;
  const T* b = nullptr;
  float* partial = nullptr;

  int blocks() const {
    return static_cast<int>(std::clamp<std::int64_t>((count + 4095) / 4096, 1, kBlocks));
  }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const std::int64_t first = count * block.index() / block.blocks();
    const std::int64_t end = count * (block.index() + 1) / block.blocks();
    const BlockTeamOver<Block> team(block);
    const auto number = static_cast<int>(end - first);
    const float apart = team.arg_max(number,
                                     [&](int i) {
                                       const float d = std::fabs(Element<T>::widen(a[first + i]) -
                                                                 Element<T>::widen(b[first + i]));
                                       return d <= std::numeric_limits<float>::max()
                                                  ? d
                                                  : std::numeric_limits<float>::infinity();
                                     })
                            .value;
    const float size =
        team.arg_max(number, [&](int i) { return std::fabs(Element<T>::widen(b[first + i])); })
            .value;
    if (block.thread() != 0) return;
    partial[2 * block.index()] = apart;
    partial[2 * block.index() + 1] = size;
  }
};

}  // namespace rk
