#include "retrieval/statistics/per_class.h"

#include "engine/device/context.h"
#include "tests/retrieval/mixed_cases.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace rk {
namespace {

// Both add the same numbers in the same order; only the division rounds differently.
constexpr double kRounding = 1e-12;

TEST(PerClass, DrawnCasesAgreeWithCountingClassByClass) {
  const std::uint64_t seed = random_seed();
  for (std::uint64_t index = 0; index < 60; ++index) {
    const MixedCase one = mixed_case(seed, index);
    SCOPED_TRACE(one.what);
    const EmbeddingView gallery = one.gallery ? one.gallery->view() : EmbeddingView{};
    const auto metrics = evaluate(Context(one.threads), one.queries.view(),
                                  one.gallery ? &gallery : nullptr, one.options);
    const PerQuery& queries = metrics->per_query;
    const std::vector<std::int64_t>& labels = one.queries.labels;
    const auto rows = metrics_by_group(queries, labels);
    const std::set<std::int64_t> distinct(labels.begin(), labels.end());
    ASSERT_EQ(rows.size(), distinct.size());
    double map = 0, valid = 0;
    auto label = distinct.begin();
    for (const GroupMetrics& row : rows) {
      EXPECT_EQ(row.group, *label++);
      double n = 0, all = 0, first = 0, ap = 0, ap_at_r = 0, r_precision = 0;
      for (std::size_t q = 0; q < labels.size(); ++q) {
        if (labels[q] != row.group) continue;
        all += 1;
        if (queries.first_hit_rank[q] == 0) continue;
        n += 1;
        first += queries.first_hit_rank[q] == 1 ? 1 : 0;
        ap += queries.ap[q];
        ap_at_r += queries.ap_at_r[q];
        r_precision += queries.r_precision[q];
      }
      EXPECT_EQ(static_cast<double>(row.queries), all);
      EXPECT_EQ(static_cast<double>(row.queries_valid), n);
      if (n == 0) {
        EXPECT_TRUE(std::isnan(row.map) && std::isnan(row.recall_at_1));
        continue;
      }
      EXPECT_NEAR(row.recall_at_1, first / n, kRounding);
      EXPECT_NEAR(row.map, ap / n, kRounding);
      EXPECT_NEAR(row.map_at_r, ap_at_r / n, kRounding);
      EXPECT_NEAR(row.r_precision, r_precision / n, kRounding);
      map += row.map * n;
      valid += n;
    }
    if (valid > 0) {
      EXPECT_NEAR(map / valid, metrics->map, 1e-9);
    }

    const auto worst = hardest(rows, 5);
    EXPECT_LE(worst.size(), 5U);
    for (std::size_t i = 0; i < worst.size(); ++i) {
      if (i > 0) {
        EXPECT_GE(worst[i].map_at_r, worst[i - 1].map_at_r);
      }
      const auto harder = std::count_if(rows.begin(), rows.end(), [&](const GroupMetrics& row) {
        return row.map_at_r < worst[i].map_at_r;
      });
      EXPECT_LE(harder, static_cast<std::int64_t>(i));
    }
  }
}

TEST(PerClass, HardestAreOrderedByMapAtRThenMapThenLabel) {
  const std::vector<GroupMetrics> rows{{1, 2, 2, 1, 1, 0.5, 0.9},
                                       {2, 2, 2, 1, 1, 0.5, 0.4},
                                       {3, 2, 0, NAN, NAN, NAN, NAN},
                                       {4, 2, 2, 0, 0, 0.1, 0.9},
                                       {5, 2, 2, 1, 1, 0.5, 0.4}};
  std::vector<std::int64_t> order;
  for (const GroupMetrics& row : hardest(rows, 10)) order.push_back(row.group);
  EXPECT_EQ(order, (std::vector<std::int64_t>{4, 2, 5, 1}));
}

}  // namespace
}  // namespace rk
