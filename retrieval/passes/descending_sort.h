// Sorts scores in descending order, long runs by radix sort.
#pragma once

#include "kernels/radix_sort.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace rk {

// One for each thread, since long runs need room.
class DescendingSort {
 public:
  void operator()(std::span<float> scores);

 private:
  static constexpr std::int64_t kLong = 512;  // from here on radix sort is the faster one: measured

  struct Half {
    std::vector<std::uint32_t> keys, items;
    KeyedItems<std::uint32_t> view() { return {keys.data(), items.data()}; }
  };
  std::array<Half, 2> halves_;
  std::vector<float> given_;
  std::vector<std::int64_t> counts_;
};

}  // namespace rk
