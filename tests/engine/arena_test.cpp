#include "engine/tape/arena.h"

#include "engine/base/random.h"
#include "engine/device/buffer.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rk {
namespace {

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// Tensors alive at the same time share no memory; all are aligned and inside the arena.
void check(const std::vector<Lifetime>& lifetimes) {
  const ArenaPlan plan = plan_arena(lifetimes);
  ASSERT_EQ(plan.offsets.size(), lifetimes.size());
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % Buffer::kAlignment, 0U);
    EXPECT_LE(plan.offsets[i] + lifetimes[i].bytes, plan.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool apart = plan.offsets[i] + lifetimes[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + lifetimes[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(apart || !meet(lifetimes[i], lifetimes[j]) || lifetimes[i].bytes == 0 ||
                  lifetimes[j].bytes == 0)
          << i << " and " << j;
    }
  }
  std::size_t most = 0;
  for (const Lifetime& at : lifetimes) {
    std::size_t alive = 0;
    for (const Lifetime& other : lifetimes) {
      if (other.first <= at.first && at.first <= other.last) alive += other.bytes;
    }
    most = std::max(most, alive);
  }
  EXPECT_GE(plan.bytes, most);
}

TEST(Arena, NothingAliveTogetherOverlaps) {
  for (const std::uint64_t seed : random_seeds(300)) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    CounterRandom random(seed, 0, 0);
    std::vector<Lifetime> lifetimes;
    for (std::int64_t i = 0, n = 1 + random.below(40); i < n; ++i) {
      const int first = static_cast<int>(random.below(60));
      lifetimes.push_back({static_cast<std::size_t>(random.below(3000)), first,
                           first + static_cast<int>(random.below(12))});
    }
    check(lifetimes);
  }
}

TEST(Arena, SharesMemoryOfWhatNeverMeets) {
  const ArenaPlan plan = plan_arena({{4096, 0, 1}, {4096, 2, 3}, {4096, 4, 5}});
  EXPECT_EQ(plan.bytes, 4096U);
}

// Lifetimes that end and begin at the same time do overlap: a node reads while it writes.
TEST(Arena, TimesAreInclusive) {
  const ArenaPlan plan = plan_arena({{4096, 0, 2}, {4096, 2, 3}});
  EXPECT_EQ(plan.bytes, 8192U);
}

TEST(Arena, NothingNeedsNothing) { EXPECT_EQ(plan_arena({}).bytes, 0U); }

}  // namespace
}  // namespace rk
