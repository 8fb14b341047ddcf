#include "engine/base/parallel_by_work.h"
#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace rk {
namespace {

// Items of any cost, many of 0 and some above all others together: each must be visited once, in
// ranges in the order of the members, and no range may exceed its share by more than the most
// expensive item.
TEST(ParallelByWork, EveryItemOnceInRangesOfLikeWork) {
  for (const std::uint64_t seed : random_seeds(500)) {
    CounterRandom random(seed, 1, 0);
    const std::int64_t count = random.below(40);
    const int threads = 1 + static_cast<int>(random.below(5));
    std::vector<std::int64_t> work{0};
    std::int64_t dearest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t kind = random.below(4);
      const std::int64_t cost = kind == 0 ? 0 : kind == 1 ? 5000 : random.below(100);
      dearest = std::max(dearest, cost);
      work.push_back(work.back() + cost);
    }
    std::vector<std::atomic<int>> owner(static_cast<std::size_t>(count));
    for (auto& member : owner) member = -1;
    std::atomic<bool> clean = true;
    parallel_by_work(threads, count, work.data(),
                     [&](std::int64_t begin, std::int64_t end, int member) {
                       const std::int64_t own = work[at(end)] - work[at(begin)];
                       if (own * threads > work.back() + dearest * threads) clean = false;
                       for (std::int64_t i = begin; i < end; ++i) {
                         if (owner[at(i)].exchange(member) != -1) {
                           clean = false;
                         }
                       }
                     });
    ASSERT_TRUE(clean) << "seed " << seed;
    int before = 0;
    for (const auto& member : owner) {
      ASSERT_GE(member, before) << "seed " << seed;
      before = member;
    }
  }
}

}  // namespace
}  // namespace rk
