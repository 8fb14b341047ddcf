#include "tools/common/similarity_counts.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

using nlohmann::ordered_json;

TEST(SimilarityCounts, AreReadAsTheyWereWritten) {
  Metrics metrics;
  metrics.pairs.positive_histogram.assign(200, 0);
  metrics.pairs.negative_histogram.assign(200, 0);
  metrics.pairs.positive_histogram[150] = 4;
  metrics.pairs.positive_histogram[151] = 5;
  metrics.pairs.negative_histogram[90] = 7;
  const ordered_json written = similarity_counts_json(metrics);
  EXPECT_EQ(written["first"], 45);
  EXPECT_EQ(written["positives"].size(), 31U);
  const SimilarityCounts read = read_similarity_counts(written);
  ASSERT_EQ(read.positives.size(), 100U);
  ASSERT_EQ(read.negatives.size(), 100U);
  for (std::size_t bin = 0; bin < 100; ++bin) {
    EXPECT_EQ(read.positives[bin], bin == 75 ? 9 : 0) << bin;
    EXPECT_EQ(read.negatives[bin], bin == 45 ? 7 : 0) << bin;
  }
  EXPECT_TRUE(similarity_counts_json(Metrics{}).empty());
}

TEST(SimilarityCounts, OfOtherMakersAreNotKnown) {
  for (const char* text :
       {"null", "[]", "{}", R"({"bins": 100})", R"({"bins": 2, "first": 0, "positives": [1]})",
        R"({"bins": 2, "first": 1, "positives": [1, 2], "negatives": [1]})",
        R"({"bins": 2, "first": 3, "positives": [], "negatives": []})",
        R"({"bins": 1e18, "first": 0, "positives": [1], "negatives": [1]})",
        R"({"bins": 1000000000, "first": 0, "positives": [1], "negatives": [1]})",
        R"({"bins": 2, "first": -1, "positives": [1], "negatives": [1]})",
        R"({"bins": 2, "first": 0, "positives": [-1], "negatives": [1]})",
        R"({"bins": 2, "first": 0, "positives": ["1"], "negatives": [1]})"}) {
    const SimilarityCounts read = read_similarity_counts(ordered_json::parse(text));
    EXPECT_TRUE(read.positives.empty() && read.negatives.empty()) << text;
  }
}

}  // namespace
}  // namespace rk
