// Runs as a single process, or as a group if mpiexec starts several of this program (the test
// processes.engine).
#include "engine/group/process_group.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace rk {
namespace {

class ProcessGroupTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { group_ = join_process_group(); }
  static void TearDownTestSuite() {
    if (testing::Test::HasFailure()) group_->leave(1);  // the others may wait for this one
    // Together they end with the code of the one that has something to report.
    group_->end_together();
    const int last = group_->size() - 1;
    EXPECT_EQ(group_->leave(group_->rank() == last ? 5 : 0), 5);
    group_.reset();
  }
  static std::unique_ptr<ProcessGroup> group_;
};
std::unique_ptr<ProcessGroup> ProcessGroupTest::group_;

// RK_PROCESSES is set where several processes are started: a group that fell apart into single
// processes would pass every other test here.
TEST_F(ProcessGroupTest, HasAsManyProcessesAsWereStarted) {
  const char* started = std::getenv("RK_PROCESSES");
  EXPECT_EQ(group_->size(), started != nullptr ? std::stoi(started) : 1);
  EXPECT_GE(group_->rank(), 0);
  EXPECT_LT(group_->rank(), group_->size());
}

TEST_F(ProcessGroupTest, GathersInTheOrderOfRanks) {
  const std::int64_t rank = group_->rank();
  const std::vector<std::int64_t> mine = {10 * rank, 10 * rank + 1};
  std::vector<std::int64_t> all(2 * static_cast<std::size_t>(group_->size()), -1);
  group_->all_gather<std::int64_t>(mine, all);
  std::vector<std::int64_t> in_place(all.size(), -1);
  const auto own = std::span(in_place).subspan(2 * static_cast<std::size_t>(rank), 2);
  std::ranges::copy(mine, own.begin());
  group_->all_gather<std::int64_t>(own, in_place);
  for (std::int64_t r = 0; r < group_->size(); ++r) {
    const auto at = static_cast<std::size_t>(2 * r);
    EXPECT_EQ(all[at], 10 * r);
    EXPECT_EQ(all[at + 1], 10 * r + 1);
  }
  EXPECT_EQ(in_place, all);
}

// Counts that are not divisible by the number of processes or below it, growing and shrinking.
// Whole numbers, whose sums are exact in any order.
TEST_F(ProcessGroupTest, SumsElementByElement) {
  for (const std::size_t count : {1U, 2U, 7U, 1000U, 3U}) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>((group_->rank() + 1) * static_cast<int>(i + 1));
    }
    group_->all_reduce_sum(values);
    const int ranks = group_->size() * (group_->size() + 1) / 2;
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(values[i], static_cast<float>(ranks * static_cast<int>(i + 1))) << count;
    }
  }
}

// Even where the order of additions affects rounding, all processes must have the same bits.
TEST_F(ProcessGroupTest, SumsAreTheSameEverywhere) {
  std::vector<float> values(999);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 1.0F / static_cast<float>(1 + i * 7 + static_cast<std::size_t>(group_->rank()) * 5);
  }
  group_->all_reduce_sum(values);
  std::vector<float> all(values.size() * static_cast<std::size_t>(group_->size()));
  group_->all_gather<float>(values, all);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], values[i % values.size()]) << i;
}

TEST_F(ProcessGroupTest, KnowsTheLargest) {
  EXPECT_EQ(group_->all_reduce_max(group_->rank()), group_->size() - 1);
  EXPECT_EQ(group_->all_reduce_max(-3 - group_->rank()), -3);
}

}  // namespace
}  // namespace rk
