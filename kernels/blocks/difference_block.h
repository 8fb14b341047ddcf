// How far two tensors on a GPU differ, for comparing two ways of computing the same result.
//
//   partial[b] = { sum (a - b)^2, sum b^2 } over a block's share, in double
//
// Bytes moved: each tensor once, b twice.
#pragma once

#include "kernels/block_team.h"
#include "kernels/element.h"

#include <algorithm>
#include <cstdint>

namespace rk {

// partial: double [blocks(), 2].
template <class T> struct SquaredDifferences {
  static constexpr int kBlocks = 1024;

  std::int64_t count = 0;
  const T* a = nullptr;
  const T* b = nullptr;
  double* partial = nullptr;

  int blocks() const {
    return static_cast<int>(std::clamp<std::int64_t>((count + 4095) / 4096, 1, kBlocks));
  }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const std::int64_t first = count * block.index() / block.blocks();
    const std::int64_t end = count * (block.index() + 1) / block.blocks();
    const auto team = team_of(block);
    const auto number = static_cast<int>(end - first);
    const auto wide = [](T value) { return static_cast<double>(Element<T>::widen(value)); };
    const double apart = team.sum(number, [&](int i) {
      const double off = wide(a[first + i]) - wide(b[first + i]);
      return off * off;
    });
    const double size = team.sum(number, [&](int i) {
      const double value = wide(b[first + i]);
      return value * value;
    });
    if (block.thread() != 0) return;
    partial[2 * block.index()] = apart;
    partial[2 * block.index() + 1] = size;
  }
};

}  // namespace rk
