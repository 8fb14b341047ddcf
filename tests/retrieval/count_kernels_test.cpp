#include "retrieval/passes/count_kernels.h"
#include "engine/base/integers.h"

#include "engine/base/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

namespace rk {
namespace {

// Draws from few different values, so that scores and thresholds are often equal.
std::vector<float> coarse(std::int64_t count, std::uint32_t stream) {
  CounterRandom random(3, stream, 0);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(random.below(40)) / 8.0F - 2.0F);
  }
  return values;
}

std::vector<float> descending(std::int64_t count, std::uint32_t stream) {
  std::vector<float> values = coarse(count, stream);
  std::sort(values.begin(), values.end(), std::greater<>());
  return values;
}

std::vector<std::int32_t> plain_counts(const std::vector<float>& scores,
                                       const std::vector<float>& thresholds) {
  std::vector<std::int32_t> counts;
  for (const float t : thresholds) {
    counts.push_back(static_cast<std::int32_t>(
        std::count_if(scores.begin(), scores.end(), [&](float s) { return s >= t; })));
  }
  return counts;
}

TEST(CountKernels, RowsAgreeWithPlainCounting) {
  for (const std::int64_t n : {1, 15, 16, 17, 255, 256, 300}) {
    for (const std::int64_t r : {1, 2, 3, 4, 5, 8, 63, 64, 65, 79, 80, 81, 200, 4096, 4097, 5000}) {
      SCOPED_TRACE(testing::Message() << n << " scores, " << r << " thresholds");
      std::vector<float> scores = coarse(n, 1);
      scores[0] = -std::numeric_limits<float>::infinity();
      const std::vector<float> thresholds = descending(r, 2);
      const std::vector<std::int32_t> expected = plain_counts(scores, thresholds);

      std::vector<std::int32_t> counts(static_cast<std::size_t>(r), 0);
      if (r > kCompareAtMost) {
        count_between(scores, thresholds, counts.data());
        std::partial_sum(counts.begin(), counts.end(), counts.begin());
      } else {
        count_reaching(scores, thresholds, counts.data());
      }
      EXPECT_EQ(counts, expected);
    }
  }
}

TEST(CountKernels, ColumnsAgreeWithPlainCounting) {
  constexpr std::int64_t kStride = 48;
  for (const std::int64_t rows : {1, 7, 64}) {
    for (const std::int64_t steps : {0, 1, 3, 4, 6, 64}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << steps << " steps");
      const std::vector<float> scores = coarse(rows * kStride, 4);
      std::vector<float> thresholds(static_cast<std::size_t>(steps * kColumnLanes),
                                    std::numeric_limits<float>::infinity());
      // Neighbouring lanes use from none to all of the steps; some lie above every score.
      const auto steps_of = [&](std::int64_t lane) { return steps * (lane % 6) / 5; };
      std::vector<std::vector<float>> by_lane;
      for (std::int64_t lane = 0; lane < kColumnLanes; ++lane) {
        const std::int64_t own = steps_of(lane);
        by_lane.push_back(descending(own, static_cast<std::uint32_t>(10 + lane)));
        for (std::int64_t k = 0; k < own; ++k) {
          float& threshold = by_lane.back()[at(k)];
          if (lane % 4 == 3) threshold += 8.0F;
          thresholds[at((steps - own + k) * kColumnLanes + lane)] = threshold;
        }
      }
      std::vector<std::int32_t> counts(thresholds.size(), 5);  // counts must be added to these
      count_reaching_columns(scores.data(), rows, kStride, thresholds.data(), steps, counts.data());
      for (std::int64_t lane = 0; lane < kColumnLanes; ++lane) {
        std::vector<float> column;
        for (std::int64_t i = 0; i < rows; ++i) {
          column.push_back(scores[at(i * kStride + lane)]);
        }
        const auto expected = plain_counts(column, by_lane[at(lane)]);
        const std::int64_t first = steps - steps_of(lane);
        for (std::int64_t k = 0; k < steps; ++k) {
          EXPECT_EQ(counts[at(k * kColumnLanes + lane)],
                    5 + (k < first ? 0 : expected[at(k - first)]));
        }
      }
    }
  }
}

// Random numbers of scores and thresholds, with columns that use from none to all of the steps.
TEST(CountKernels, DrawnCasesAgreeWithPlainCounting) {
  CounterRandom random(random_seed(), 0, 0);
  const auto drawn = [&](std::int64_t count, std::int64_t kinds, float shift) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(static_cast<float>(random.below(kinds)) + shift);
    }
    return values;
  };
  for (int i = 0; i < 500; ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    const std::int64_t kinds = 1 + random.below(i % 3 == 0 ? 20000 : 60);
    const auto thresholds_of = [&](std::int64_t count) {
      std::vector<float> values = drawn(count, kinds, static_cast<float>(random.below(60) - 20));
      std::sort(values.begin(), values.end(), std::greater<>());
      return values;
    };
    const std::vector<float> row = drawn(1 + random.below(600), kinds, 0);
    // One in four beyond the 4,096 that three comparisons find a place among.
    const std::int64_t most = i % 4 == 0 ? 9000 : i % 4 == 1 ? 4200 : 300;
    const std::vector<float> searched =
        thresholds_of(kCompareAtMost + 1 + random.below(most - kCompareAtMost));
    std::vector<std::int32_t> counts(searched.size(), 0);
    count_between(row, searched, counts.data());
    std::partial_sum(counts.begin(), counts.end(), counts.begin());
    ASSERT_EQ(counts, plain_counts(row, searched));
    const std::vector<float> compared = thresholds_of(1 + random.below(kCompareAtMost));
    counts.assign(compared.size(), 0);
    count_reaching(row, compared, counts.data());
    ASSERT_EQ(counts, plain_counts(row, compared));

    const std::int64_t rows = 1 + random.below(64), steps = random.below(kCompareAtMost + 1);
    const std::vector<float> tile = drawn(rows * kColumnLanes, kinds, 0);
    std::vector<float> lanes(static_cast<std::size_t>(steps * kColumnLanes),
                             std::numeric_limits<float>::infinity());
    std::vector<std::vector<float>> own;
    for (std::int64_t lane = 0; lane < kColumnLanes; ++lane) {
      own.push_back(thresholds_of(random.below(steps + 1)));
      const auto first = steps - static_cast<std::int64_t>(own.back().size());
      for (std::int64_t k = first; k < steps; ++k) {
        lanes[at(k * kColumnLanes + lane)] = own.back()[at(k - first)];
      }
    }
    std::vector<std::int32_t> found(lanes.size(), 0);
    count_reaching_columns(tile.data(), rows, kColumnLanes, lanes.data(), steps, found.data());
    for (std::int64_t lane = 0; lane < kColumnLanes; ++lane) {
      std::vector<float> column;
      for (std::int64_t r = 0; r < rows; ++r) {
        column.push_back(tile[at(r * kColumnLanes + lane)]);
      }
      const std::vector<float>& mine = own[at(lane)];
      const std::vector<std::int32_t> expected = plain_counts(column, mine);
      const auto first = steps - static_cast<std::int64_t>(mine.size());
      for (std::int64_t k = 0; k < steps; ++k) {
        ASSERT_EQ(found[at(k * kColumnLanes + lane)], k < first ? 0 : expected[at(k - first)])
            << "lane " << lane << ", step " << k;
      }
    }
  }
}

}  // namespace
}  // namespace rk
