#include "retrieval/passes/pair_curve.h"
#include "engine/base/integers.h"

#include "engine/base/random.h"
#include "retrieval/passes/pair_statistics.h"
#include "tests/support/random_seed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace rk {
namespace {

// Sums of `terms` products of +-1: few different scores, many on the edges of bins.
float code_score(CounterRandom& random, int terms) {
  int sum = 0;
  for (int i = 0; i < terms; ++i) sum += random.below(2) == 0 ? 1 : -1;
  return static_cast<float>(sum);
}

// Whoever accepts the pairs that score at least a point's threshold must get its rates, exactly.
void expect_rates(const std::vector<float>& positives, const std::vector<float>& negatives,
                  double largest) {
  PairStatistics statistics(1, 1, largest);
  statistics.add_positives(positives);
  statistics.add_negatives(0, 0, negatives);
  const std::vector<PairCurvePoint> curve = statistics.result(false).curve;
  ASSERT_FALSE(curve.empty());
  const auto share = [](const std::vector<float>& scores, double threshold) {
    const auto accepted = std::ranges::count_if(
        scores, [&](float score) { return static_cast<double>(score) >= threshold; });
    return static_cast<double>(accepted) / static_cast<double>(scores.size());
  };
  for (const PairCurvePoint& point : curve) {
    EXPECT_EQ(share(positives, point.threshold), point.recall) << point.threshold;
    EXPECT_EQ(share(negatives, point.threshold), point.false_positive_rate) << point.threshold;
  }
  EXPECT_EQ(curve.back().recall, 1.0);
  EXPECT_EQ(curve.back().false_positive_rate, 1.0);
}

TEST(PairCurve, AThresholdAcceptsWhatItsPointCounts) {
  const std::uint64_t seed = random_seed();
  for (std::uint64_t index = 0; index < 200 && !testing::Test::HasFailure(); ++index) {
    CounterRandom random(seed, 1, index);
    const int terms = 1 + static_cast<int>(random.below(64));
    // Of unit length; as they are; and bins of another width than a power of two.
    const std::vector<float> scales = {1.0F / static_cast<float>(terms), 1.0F, 0.3F, 1e-6F};
    const float scale = scales[at(random.below(4))];
    const auto draw = [&](std::int64_t n) {
      std::vector<float> scores;
      for (std::int64_t i = 0; i < n; ++i) scores.push_back(code_score(random, terms) * scale);
      return scores;
    };
    SCOPED_TRACE(fmt::format("case {}: {} terms, scale {}", index, terms, scale));
    const std::vector<float> positives = draw(1 + random.below(100));
    expect_rates(positives, draw(1 + random.below(400)),
                 static_cast<double>(scale) * static_cast<double>(terms));
  }
}

TEST(PairCurve, ScoresOutsideTheBinsAreAcceptedLast) {
  expect_rates({1.0000001F, 0.5F, -1.0000002F}, {0.25F, -1.0F, -1.0001F, 1.00005F}, 1);
}

// Counters of 32 bits that are added up many times count what those do that never are.
TEST(PairStatistics, SmallCountersAreAddedUpBeforeTheyOverflow) {
  CounterRandom random(random_seed(), 2, 0);
  for (const double largest : {1.0, 40.0}) {  // with and without bins of their own for the JSD
    SCOPED_TRACE(largest);
    PairStatistics whole(1, 1, largest), often(1, 1, largest, 1000);
    std::int64_t positives = 0, negatives = 0;
    for (int i = 0; i < 40; ++i) {
      std::vector<float> scores(static_cast<std::size_t>(random.below(700)));
      for (float& score : scores) score = code_score(random, 40) * static_cast<float>(largest) / 40;
      (i % 3 == 0 ? positives : negatives) += std::ssize(scores);
      for (PairStatistics* each : {&whole, &often}) {
        if (i % 3 == 0) {
          each->add_positives(scores);
        } else {
          each->add_negatives(0, 0, scores);
        }
      }
    }
    const PairMetrics expected = whole.result(false), got = often.result(false);
    EXPECT_EQ(got.positives, positives);
    EXPECT_EQ(got.negatives, negatives);
    EXPECT_EQ(got.roc_auc, expected.roc_auc);
    EXPECT_EQ(got.roc_auc_error_bound, expected.roc_auc_error_bound);
    EXPECT_EQ(got.jsd, expected.jsd);
    EXPECT_EQ(got.positive_histogram, expected.positive_histogram);
    EXPECT_EQ(got.negative_histogram, expected.negative_histogram);
    EXPECT_EQ(std::accumulate(got.negative_histogram.begin(), got.negative_histogram.end(),
                              std::int64_t{0}),
              negatives);
  }
}

TEST(PairCurve, OneSideAloneHasNone) {
  EXPECT_TRUE(pair_curve(std::vector<double>(10, 1), std::vector<double>(10, 0), 1).empty());
  EXPECT_TRUE(pair_curve(std::vector<double>(10, 0), std::vector<double>(10, 1), 1).empty());
}

}  // namespace
}  // namespace rk
