// Work over cores (engine/base/parallel.h) where items cost unlike: contiguous ranges of about the
// same work each instead of the same number of items.
#pragma once

#include "engine/base/parallel.h"

#include <algorithm>
#include <cstdint>

namespace rk {

// f(begin, end, member): [0, count) split into `threads` contiguous ranges, empty ones left out.
// work [count + 1]: the work of all items before one, ascending from 0, its last element (the
// whole) below 2^63 / threads. A range begins with the first item that equal shares leave to it, so
// none exceeds its share by more than one item. The split depends on work and threads alone.
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
