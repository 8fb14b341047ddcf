// Offsets for buffers that live only part of a step, so that those never needed at the same time
// share memory. Times are the positions of nodes in one step (forward, then backward).
//
// Greedy: largest first, each at the lowest offset where it meets nobody alive at the same time.
// For the residual networks here that reaches the lower bound (the most bytes alive at one time)
// within a few percent; Program reports both.
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
  std::vector<std::size_t> offsets;  // one a lifetime, multiples of Buffer::kAlignment
  std::size_t bytes = 0;             // what the arena must hold
  std::size_t lower_bound = 0;       // most bytes alive at one time
};

ArenaPlan plan_arena(const std::vector<Lifetime>& lifetimes);

}  // namespace rk
