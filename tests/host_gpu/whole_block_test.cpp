#include "tests/host_gpu/kernels/whole_block.h"

#include "engine/base/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace rk::host_gpu {
namespace {

// Runs f(block) on every thread of one block.
template <class F> void on_a_block(F&& f) {
  BlockMemory memory;
  WholeBlock::run(0, 1, &memory, f);
}

TEST(WholeBlock, ATeamComputesWhatOneThreadDoes) {
  CounterRandom random(random_seed(), 0, 0);
  for (const int n : {0, 1, 31, 32, 33, 255, 256, 257, 1000}) {
    std::vector<int> values;
    for (int i = 0; i < n; ++i) values.push_back(static_cast<int>(random.below(100)));
    const int sum = std::accumulate(values.begin(), values.end(), 0);
    std::vector<int> large;
    for (int i = 0; i < n; ++i) {
      if (values[at(i)] > 50) large.push_back(i);
    }
    std::vector<int> sums(WholeBlock::kThreads), best(WholeBlock::kThreads), found(at(n));
    std::vector<int> counts(WholeBlock::kThreads);
    on_a_block([&](const WholeBlock& block) {
      const auto team = team_of(block);
      const auto own = at(block.thread());
      sums[own] = team.sum(n, [&](int i) { return values[at(i)]; });
      best[own] = team.arg_max(n, [&](int i) { return static_cast<float>(values[at(i)]); }).index;
      counts[own] = team.compact(
          n, [&](int i) { return values[at(i)] > 50; },
          [&](int i, int slot) { found[at(slot)] = i; });
    });
    const auto largest = std::max_element(values.begin(), values.end()) - values.begin();
    for (const int each : sums) EXPECT_EQ(each, sum) << n;
    for (const int each : best) EXPECT_EQ(each, n == 0 ? -1 : static_cast<int>(largest)) << n;
    for (const int each : counts) EXPECT_EQ(each, std::ssize(large)) << n;
    found.resize(large.size());
    EXPECT_EQ(found, large) << n;
  }
}

// Where a GPU would hang, or add up what is not there.
TEST(WholeBlockDeathTest, ThreadsThatGoTwoWaysEndTheProgram) {
  EXPECT_DEATH(on_a_block([](const WholeBlock& block) {
                 if (block.thread() != 70) block.sync();
               }),
               "threads end while others wait for them");
  // A macro's lines are one.
  EXPECT_DEATH(on_a_block([](const WholeBlock& block) { block.sync(block.thread() < 32 ? 1 : 2); }),
               "threads wait for each other at two places");
  EXPECT_DEATH(on_a_block([](const WholeBlock& block) {
                 if (block.thread() != 70) block.ballot(true);
               }),
               "not every lane reaches a warp's operation");
}

// A block runs them in other orders than the one before: a value that another warp wrote without a
// barrier between is there in one block and not yet in the next.
TEST(WholeBlock, OrdersDiffer) {
  std::vector<int> first(20);
  for (int& each : first) {
    each = -1;
    on_a_block([&](const WholeBlock& block) {
      if (each < 0) each = block.thread();
    });
  }
  EXPECT_NE(*std::max_element(first.begin(), first.end()),
            *std::min_element(first.begin(), first.end()));
}

}  // namespace
}  // namespace rk::host_gpu
