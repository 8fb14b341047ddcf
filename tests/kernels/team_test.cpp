#include "kernels/team.h"

#include "engine/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace rk {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Small integers, so that sums are exact in any order and the largest number comes often.
TEST(SerialTeam, DrawnCasesAgreeWithPlainLoops) {
  CounterRandom random(random_seed(), 0, 0);
  const SerialTeam team;
  for (int drawn = 0; drawn < 500; ++drawn) {
    const auto n = static_cast<int>(random.below(random.below(2) == 0 ? 40 : 1500));
    const auto rows = static_cast<int>(random.below(11));
    const std::int64_t kinds = 1 + random.below(50);
    SCOPED_TRACE(testing::Message() << "case " << drawn << ": " << rows << " x " << n);
    std::vector<float> values;
    for (int i = 0; i < n; ++i) {
      values.push_back(random.below(30) == 0 ? -std::numeric_limits<float>::infinity()
                                             : static_cast<float>(random.below(kinds) - 20));
    }
    const auto finite = [&](int i) { return std::max(values[at(i)], -50.0F); };

    float sum = 0;
    for (int i = 0; i < n; ++i) sum += finite(i);
    EXPECT_EQ(team.sum(n, finite), sum);

    std::vector<float> sums(at(rows), -1.0F), expected_sums(at(rows), 0.0F);
    const auto weighted = [&](int r, int i) { return static_cast<float>(r - 3) * finite(i); };
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i < n; ++i) expected_sums[at(r)] += weighted(r, i);
    }
    team.sums(rows, n, sums.data(), weighted);
    EXPECT_EQ(sums, expected_sums);

    const auto largest = std::max_element(values.begin(), values.end());
    const auto best = team.arg_max(n, [&](int i) { return values[at(i)]; });
    EXPECT_EQ(best.index, n == 0 ? -1 : static_cast<int>(largest - values.begin()));
    EXPECT_EQ(best.value, n == 0 ? -std::numeric_limits<float>::infinity() : *largest);

    std::vector<int> chosen(at(n), -1), expected;
    const auto wanted = [&](int i) { return values[at(i)] > 0; };
    for (int i = 0; i < n; ++i) {
      if (wanted(i)) expected.push_back(i);
    }
    const int count = team.compact(n, wanted, [&](int i, int slot) { chosen[at(slot)] = i; });
    chosen.resize(at(count));
    EXPECT_EQ(chosen, expected);
  }
}

}  // namespace
}  // namespace rk
