// Parallel work on CPU cores (engine/base/parallel.h) for items of unequal cost: contiguous ranges
// of about equal work instead of equal length.
#pragma once

#include "engine/base/parallel.h"

#include <algorithm>
#include <cstdint>

namespace rk {

// f(begin, end, member): [0, count) split into `threads` contiguous ranges, empty ones left out.
// work [count + 1] is the running sum of the items' costs: work[i] is the cost of all items before
// i, ascending from 0; the total, work[count], must be below 2^63 / threads. Range boundaries are
// rounded up to whole items, so no range exceeds its equal share by more than one item. The split
// depends on work and threads alone.
template <class F>
void parallel_by_work(int threads, std::int64_t count, const std::int64_t* work, F&& f) {
  const auto begin_of = [&](std::int64_t part) {
    if (part == threads) return count;
    const std::int64_t before = work[count] * part / threads;
    return static_cast<std::int64_t>(std::lower_bound(work, work + count, before) - work);
  };
  parallel_for(threads, threads, [&](std::int64_t part, int) {
    const std::int64_t begin = begin_of(part);
    const std::int64_t end = begin_of(part + 1);
    if (begin < end) f(begin, end, static_cast<int>(part));
  });
}

}  // namespace rk
