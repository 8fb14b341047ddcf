// Long rankings against references that count every rank; tests/threads compares numbers of
// threads.
#include "losses/scores/ranking.h"
#include "engine/base/integers.h"

#include "engine/base/random.h"
#include "tests/losses/reference.h"
#include "tests/support/random_seed.h"
#include "tools/common/normalized_loss.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace rk {
namespace {

// `levels`: how many different scores there are, for ties; 0: as many as float has.
LossData<double> scores_and_targets(std::int64_t rows, std::int64_t classes, std::int64_t levels) {
  LossData<double> data;
  data.rows = rows;
  data.classes = classes;
  for (std::int64_t i = 0; i < rows * classes; ++i) {
    CounterRandom random(7, static_cast<std::uint32_t>(levels), static_cast<std::uint64_t>(i));
    const double score =
        levels > 0 ? static_cast<double>(random.below(levels)) / 64 : random.uniform(-1, 1);
    data.targets.push_back(random.below(8) == 0 ? 1 : 0);
    // A float, so that both precisions rank the same numbers.
    data.scores.push_back(static_cast<double>(static_cast<float>(score)));
  }
  return data;
}

TEST(Ranking, AThousandScoresAreExact) {
  for (const char* name : {"rambo_map", "rambo_apc", "rambo_map_apc"}) {
    for (const std::int64_t levels : {0, 40}) {
      // A margin and lambda that are sums of powers of two: ties stay ties.
      const LossSpec spec = parse_loss(std::string(name) + ":lambda=0.5,margin=0.125");
      const LossData<double> data = scores_and_targets(500, 2, levels);
      const Context context(2);
      const reference::Value expected = reference::reference_of(spec).value(data, spec.values);
      LossFunction<double> exact(context, spec, data.shape(), false);
      const LossResult<double> result = exact(data);
      EXPECT_NEAR(result.loss, expected.loss, 1e-12);
      ASSERT_EQ(result.grad.size(), expected.grad.size());
      double largest = 0;
      for (std::size_t i = 0; i < expected.grad.size(); ++i) {
        largest = std::max(largest, std::abs(expected.grad[i]));
        // A gradient element is a whole number of ranks over n lambda.
        ASSERT_NEAR(result.grad[i], expected.grad[i], 1e-12) << name << " element " << i;
      }
      EXPECT_GT(largest, 0) << name;
    }
  }
}

// Scores whose v (score and margin) are often equal in float though not in double. Positives move
// up, so no negative may end with fewer positives above it.
TEST(Ranking, InFloatNoPositiveFallsBelowANegative) {
  const std::uint64_t seed = random_seed();
  const Context context(2);
  for (const char* name : {"rambo_map", "rambo_map_apc"}) {
    for (const double lambda : {1e-3, 0.1}) {
      const LossSpec spec = parse_loss(fmt::format("{}:lambda={},margin=0.05", name, lambda));
      LossData<float> data;
      data.rows = 60'000;  // so many that the last ones' steps are below float's spacing
      data.classes = 1;
      for (std::int64_t i = 0; i < data.rows; ++i) {
        CounterRandom random(seed, 2, static_cast<std::uint64_t>(i));
        data.scores.push_back(static_cast<float>(1 / (1 + std::exp(-random.normal()))));
        data.targets.push_back(random.below(2) == 0 ? 1 : 0);
      }
      LossFunction<float> function(context, spec, data.shape(), false);
      const LossResult<float> result = function(data);
      std::int64_t passed = 0;
      for (std::size_t i = 0; i < result.grad.size(); ++i) {
        if (data.targets[i] != 0) continue;
        ASSERT_GE(result.grad[i], 0) << name << ", lambda " << lambda << ", element " << i;
        passed += result.grad[i] > 0 ? 1 : 0;
      }
      EXPECT_GT(passed, 0);
    }
  }
}

// A positive and a negative whose scores differ by the margin but for float's rounding have the
// same v. The positive comes first and so ranks above; a step up keeps it there, however small.
TEST(Ranking, WhatRoundsToOneIsATie) {
  const Context context(1);
  const LossSpec spec = parse_loss("rambo_apc:lambda=0.001,margin=0.05");
  LossData<float> data;
  data.rows = 100'000;
  data.classes = 1;
  for (std::int64_t i = 0; i < data.rows; ++i) {  // all others lie above these two
    data.scores.push_back(static_cast<float>(0.96 + 3e-7 * static_cast<double>(i)));
    data.targets.push_back(i % 2 == 0 ? 1 : 0);
  }
  const std::size_t positive = 99'998, negative = 99'999;
  data.scores[positive] = 0.82778823F;
  data.scores[negative] = 0.7777883F;
  LossFunction<float> function(context, spec, data.shape(), false);
  const LossResult<float> result = function(data);
  EXPECT_EQ(result.grad[positive], 0);
  EXPECT_EQ(result.grad[negative], 0);
}

// All positives first: exactly 0, although the mean of ones may be a sum of fractions that round,
// such as thirds and sevenths; then one of many negatives before the last positive.
TEST(Ranking, ASolvedRankingIsZeroAndANearlySolvedOneKeepsItsDigits) {
  const Context context(1);
  for (const char* name : {"rambo_map", "rambo_apc", "rambo_map_apc"}) {
    const LossSpec spec = parse_loss(std::string(name) + ":margin=0");
    for (std::int64_t positives = 1; positives <= 300; positives += 1 + positives / 4) {
      LossData<double> data;
      data.rows = positives + 40;
      data.classes = 1;
      for (std::int64_t i = 0; i < data.rows; ++i) {
        data.scores.push_back(static_cast<double>(-i));
        data.targets.push_back(i < positives ? 1 : 0);
      }
      LossFunction<double> function(context, spec, data.shape(), false);
      EXPECT_EQ(function(data).loss, 0) << name << ", " << positives << " positives";
      std::swap(data.targets[at(positives - 1)], data.targets[at(positives)]);
      const double exact = 1 / static_cast<double>((positives + 1) * positives);
      EXPECT_NEAR(function(data).loss, exact, 1e-15 * exact) << name;
    }
  }
}

}  // namespace
}  // namespace rk
