#include "retrieval/passes/positive_order.h"

#include "engine/base/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace rk {
namespace {

std::uint64_t plain_twice_wins(const std::vector<float>& positives,
                               const std::vector<float>& negatives) {
  std::uint64_t sum = 0;
  for (const float negative : negatives) {
    for (const float positive : positives) {
      sum += positive > negative ? 2U : positive == negative ? 1U : 0U;
    }
  }
  return sum;
}

void expect_plain(const std::vector<float>& positives, const std::vector<float>& negatives,
                  int threads = 1) {
  const PositiveOrder order(threads, positives);
  const std::uint64_t expected = plain_twice_wins(positives, negatives);
  EXPECT_EQ(order.twice_wins(negatives), expected);
  std::uint64_t one_by_one = 0;
  for (const float negative : negatives) one_by_one += order.view().twice_wins(negative);
  EXPECT_EQ(one_by_one, expected);
  std::vector<float> sorted = positives;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_TRUE(std::equal(sorted.begin(), sorted.end(), order.sorted().begin()));
  EXPECT_EQ(static_cast<std::int64_t>(order.bytes()), PositiveOrder::bytes_of(std::ssize(sorted)));
}

TEST(PositiveOrder, ExtremesAgreeWithPlainCounting) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> negatives{-kLargest, -1, -kTiny, -0.0F, 0, kTiny, 0.5F, 1, kLargest};
  expect_plain({}, negatives);
  expect_plain({0.5F}, {});
  expect_plain({0.5F}, negatives);
  expect_plain(std::vector<float>(1000, 0.5F), negatives);
  expect_plain({-kTiny, -0.0F, 0, kTiny}, negatives);
  std::vector<float> wide(100, kLargest);
  wide.resize(200, -kLargest);
  wide.resize(300, 0.5F);
  expect_plain(wide, negatives);
  std::vector<float> close(64, 1);
  for (std::size_t i = 0; i < close.size(); ++i) {
    close[i] = std::nextafter(close[i == 0 ? 0 : i - 1], 2.0F);
  }
  expect_plain(close, close);
}

// Spread evenly, in clumps, with far outliers and on a grid: with few to thousands in a cell.
TEST(PositiveOrder, DrawnCasesAgreeWithPlainCounting) {
  CounterRandom random(random_seed(), 0, 0);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    const auto kind = random.below(4);
    const float grid = static_cast<float>(1 + random.below(2000));
    const auto score = [&] {
      const auto u = static_cast<float>(random.uniform(-1, 1));
      switch (kind) {
        case 0: return u;
        case 1: return 0.25F + u * u * u * 1e-3F;
        case 2: return random.below(50) == 0 ? u * 1e6F : u;
        default: return std::round(u * grid) / grid;
      }
    };
    const auto drawn = [&](std::int64_t most) {
      std::vector<float> values(static_cast<std::size_t>(random.below(most)));
      for (float& value : values) value = score();
      return values;
    };
    const std::vector<float> positives = drawn(i % 10 == 0 ? 20000 : 600);
    expect_plain(positives, drawn(700), 1 + static_cast<int>(random.below(4)));
  }
}

}  // namespace
}  // namespace rk
