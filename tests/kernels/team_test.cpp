// The collectives of every team against plain loops: SerialTeam; ThreadTeam and BlockTeam, the
// latter on blocks emulated by host threads, where every thread must get the same result.
#include "kernels/team.h"

#include "engine/base/random.h"
#include "tests/race/emulated_block.h"
#include "tests/race/thread_team.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

namespace rk {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::size_t at(int i) { return static_cast<std::size_t>(i); }

struct DrawnCase {
  int rows = 0;
  std::vector<float> values;

  int size() const { return static_cast<int>(values.size()); }
  float finite(int i) const { return values[at(i)] > -50 ? values[at(i)] : -50.0F; }
  float weighted(int r, int i) const { return static_cast<float>(r - 3) * finite(i); }
  bool wanted(int i) const { return values[at(i)] > 0; }
};

// Small integers, so that sums are exact in any order and the largest number comes often; some
// -infinity and NaN, in a few cases nothing else.
std::vector<DrawnCase> draw_cases(int count, CounterRandom& random) {
  std::vector<DrawnCase> cases(at(count));
  for (DrawnCase& drawn : cases) {
    drawn.rows = static_cast<int>(random.below(11));
    drawn.values.resize(static_cast<std::size_t>(random.below(random.below(2) == 0 ? 40 : 1500)));
    const std::int64_t kinds = 1 + random.below(50);
    const std::int64_t odd = random.below(20) == 0 ? 1 : 30;  // 1 in `odd` is -infinity or NaN
    for (float& value : drawn.values) {
      value = static_cast<float>(random.below(kinds) - 20);
      if (random.below(odd) == 0) value = random.below(2) == 0 ? -kInfinity : std::nanf("");
    }
  }
  return cases;
}

// A team's results for a case: Found for every thread, FoundArrays shared by the team.
struct Found {
  float sum = 0;
  ValueIndex<float> best{0, 0};
  int count = 0;
};
struct FoundArrays {
  explicit FoundArrays(const DrawnCase& drawn)
      : sums(at(drawn.rows), -1.0F), chosen(drawn.values.size(), -1) {}

  std::vector<float> sums;
  std::vector<int> chosen;
};

template <class Team> Found find(const Team& team, const DrawnCase& drawn, FoundArrays& arrays) {
  const int n = drawn.size();
  Found found;
  found.sum = team.sum(n, [&](int i) { return drawn.finite(i); });
  team.sums(drawn.rows, n, arrays.sums.data(), [&](int r, int i) { return drawn.weighted(r, i); });
  found.best = team.arg_max(n, [&](int i) { return drawn.values[at(i)]; });
  found.count = team.compact(
      n, [&](int i) { return drawn.wanted(i); },
      [&](int i, int slot) { arrays.chosen[at(slot)] = i; });
  return found;
}

void expect_plain(const DrawnCase& drawn, std::span<const Found> found, const FoundArrays& arrays) {
  float sum = 0;
  ValueIndex<float> best{-kInfinity, -1};
  std::vector<float> sums(at(drawn.rows), 0.0F);
  std::vector<int> chosen;
  for (int i = 0; i < drawn.size(); ++i) {
    const float value = drawn.values[at(i)];
    sum += drawn.finite(i);
    if (value > best.value || (value == best.value && best.index < 0)) best = {value, i};
    for (int r = 0; r < drawn.rows; ++r) sums[at(r)] += drawn.weighted(r, i);
    if (drawn.wanted(i)) chosen.push_back(i);
  }
  const auto count = static_cast<int>(chosen.size());
  chosen.resize(drawn.values.size(), -1);
  EXPECT_EQ(arrays.sums, sums);
  EXPECT_EQ(arrays.chosen, chosen);
  for (const Found& of : found) {
    EXPECT_EQ(of.sum, sum);
    EXPECT_EQ(of.best.value, best.value);
    EXPECT_EQ(of.best.index, best.index);
    EXPECT_EQ(of.count, count);
  }
}

TEST(SerialTeam, DrawnCasesAgreeWithPlainLoops) {
  CounterRandom random(random_seed(), 0, 0);
  int number = 0;
  for (const DrawnCase& drawn : draw_cases(500, random)) {
    SCOPED_TRACE(testing::Message() << "case " << number++ << " of " << drawn.size());
    FoundArrays arrays(drawn);
    const Found found = find(SerialTeam(), drawn, arrays);
    expect_plain(drawn, {&found, 1}, arrays);
  }
}

// The team that race_test looks for missing barriers with.
TEST(ThreadTeam, DrawnCasesAgreeWithPlainLoops) {
  CounterRandom random(random_seed(), 2, 0);
  int number = 0;
  for (const DrawnCase& drawn : draw_cases(90, random)) {
    SCOPED_TRACE(testing::Message() << "case " << number << " of " << drawn.size());
    FoundArrays arrays(drawn);
    std::vector<Found> found;
    std::mutex mutex;
    race::TeamState state(2 + number++ % 3);
    race::run_team(state, [&](const race::ThreadTeam& team) {
      const Found own = find(team, drawn, arrays);
      const std::lock_guard lock(mutex);
      found.push_back(own);
    });
    expect_plain(drawn, found, arrays);
  }
}

template <class State> void expect_block_is_plain(int count, std::uint64_t seed) {
  CounterRandom random(seed, 1, 0);
  const std::vector<DrawnCase> cases = draw_cases(count, random);
  std::vector<FoundArrays> arrays(cases.begin(), cases.end());
  std::vector<std::vector<Found>> found(cases.size(), std::vector<Found>(at(State::kThreads)));
  State state;
  race::run_blocks(state, 1, [&](const race::EmulatedBlockOf<State>& block) {
    const BlockTeam<race::EmulatedBlockOf<State>> team(block);
    for (std::size_t c = 0; c < cases.size(); ++c) {
      found[c][at(block.thread())] = find(team, cases[c], arrays[c]);
    }
  });
  for (std::size_t c = 0; c < cases.size(); ++c) {
    SCOPED_TRACE(testing::Message() << "case " << c << " of " << cases[c].size() << ", "
                                    << State::kWarps << " warps of " << State::kWarpSize);
    expect_plain(cases[c], found[c], arrays[c]);
  }
}

// Barriers take most of the time, so blocks of many threads get few cases.
TEST(BlockTeam, DrawnCasesAgreeWithPlainLoops) {
  const std::uint64_t seed = random_seed();
  expect_block_is_plain<race::BlockStateOf<1, 2>>(200, seed);
  expect_block_is_plain<race::BlockStateOf<2, 2>>(200, seed + 1);
  expect_block_is_plain<race::BlockStateOf<3, 4>>(60, seed + 2);
  expect_block_is_plain<race::BlockStateOf<2, 32>>(8, seed + 3);
}

}  // namespace
}  // namespace rk
