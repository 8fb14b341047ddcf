// Assigns offsets to buffers that live only part of a step, so that buffers never needed at the
// same time share memory. Times are the positions of nodes in one step (forward, then backward).
//
// Greedy: largest first, each at the lowest offset where it overlaps no buffer alive at the same
// time. For the residual networks here the result is within a few percent of the most bytes alive
// at one time, below which no plan can be.
#pragma once

#include <cstddef>
#include <vector>

namespace rk {

struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;  // first and last time of use, both inclusive
  int last = 0;
};

struct ArenaPlan {
  std::vector<std::size_t> offsets;  // one per lifetime, multiples of Buffer::kAlignment
  std::size_t bytes = 0;             // size of the arena
};

ArenaPlan plan_arena(const std::vector<Lifetime>& lifetimes);

}  // namespace rk
