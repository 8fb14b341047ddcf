#include "engine/base/parallel.h"
#include "engine/base/integers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <utility>
#include <vector>

namespace rk {
namespace {

TEST(Parallel, EveryIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    for (std::int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      parallel_for(threads, count, [&](std::int64_t i, int member) {
        EXPECT_LT(member, threads);
        ++visits[at(i)];
      });
      for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit, 1);
    }
  }
}

// Sums per member are bit-equal from run to run only because the split never changes.
TEST(Parallel, RangesAreAFunctionOfCountAndThreads) {
  const auto split = [](int threads, std::int64_t count) {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges(static_cast<std::size_t>(threads));
    parallel_ranges(threads, count, [&](std::int64_t begin, std::int64_t end, int member) {
      ranges[at(member)] = {begin, end};
    });
    return ranges;
  };
  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  EXPECT_EQ(split(3, 10), (Ranges{{0, 3}, {3, 6}, {6, 10}}));
  EXPECT_EQ(split(4, 2), (Ranges{{0, 1}, {1, 2}, {0, 0}, {0, 0}}));
  for (int repeat = 0; repeat < 20; ++repeat) EXPECT_EQ(split(3, 1001), split(3, 1001));
}

// Inside a parallel region OpenMP grants one thread: the split must hold there, too.
TEST(Parallel, NestedCallsCoverTheirRanges) {
  std::vector<std::atomic<int>> visits(64);
  parallel_for(2, 8, [&](std::int64_t outer, int) {
    parallel_for(3, 8, [&](std::int64_t inner, int) { ++visits[at(outer * 8 + inner)]; });
  });
  for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit, 1);
}

// An exception that left a thread would end the program, and one that left others behind would let
// them write to memory that is no longer theirs.
TEST(Parallel, AnExceptionReachesTheCallerOnceAllHaveEnded) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const int failing : {0, threads - 1}) {
      std::atomic<int> ended = 0;
      const auto work = [&](std::int64_t, std::int64_t, int member) {
        if (member == failing) throw std::bad_alloc();
        ++ended;
      };
      EXPECT_THROW(parallel_ranges(threads, 64, work), std::bad_alloc);
      EXPECT_EQ(ended, threads - 1);
    }
    // Of several, one.
    const auto all_fail = [](std::int64_t, std::int64_t, int) { throw std::bad_alloc(); };
    EXPECT_THROW(parallel_ranges(threads, 64, all_fail), std::bad_alloc);
  }
}

}  // namespace
}  // namespace rk
