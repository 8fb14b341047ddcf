#include "tools/common/metrics_report.h"

#include "tests/support/messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

namespace rk {
namespace {

TEST(MetricsReport, TheProtocolSaysWhatIsRemovedAndHowTiesCount) {
  Metrics metrics;
  EXPECT_EQ(protocol_text(metrics),
            "against themselves, self removed by index; inner product as given; ties count against "
            "the query");
  metrics.ties_exact = false;
  metrics.camera_rule = true;
  EXPECT_EQ(protocol_text(metrics),
            "against themselves, same label and camera removed; inner product as given; ties count "
            "against the query (up to rounding: equal rows may differ in the last bit here)");
  metrics.self_retrieval = false;
  EXPECT_EQ(protocol_text(metrics),
            "against the gallery, same label and camera removed; inner product as given; ties "
            "count against the query (up to rounding: equal rows may differ in the last bit here)");
}

// Values of which no two are equal.
Metrics made_up_metrics() {
  Metrics m{};
  m.num_queries = 7;
  m.num_queries_valid = 5;
  m.num_gallery = 9;
  m.num_pairs_positive = 1234;
  m.num_pairs_negative = 5678;
  m.recall_at = {1, 10};
  m.recall = {0.11, 0.12};
  m.r_precision = 0.13;
  m.map_at_r = 0.14;
  m.map = 0.15;
  m.pairs.roc_auc = 0.16;
  m.pairs.roc_auc_error_bound = 0.001;
  m.pairs.jsd = 0.17;
  m.pairs.pos_mean = 0.18;
  m.pairs.pos_var = 0.19;
  m.pairs.neg_mean = 0.21;
  m.pairs.neg_var = 0.22;
  m.dists_intra = 0.23;
  m.dists_inter = 0.24;
  m.pairs.positive_histogram = {1, 2};
  m.pairs.negative_histogram = {3, 4};
  m.pairs.curve = {{0.51, 0.52, 0.53, 0.54}, {0.55, 0.56, 0.57, 0.58}};
  return m;
}

const Intervals kIntervals = {.confidence = 0.9,
                              .over = "classes",
                              .values = {.recall = {{0.31, 0.32}, {0.33, 0.34}},
                                         .r_precision = {0.35, 0.36},
                                         .map_at_r = {0.37, 0.38},
                                         .map = {0.39, 0.41},
                                         .units = 12,
                                         .resamples = 1000}};

TEST(MetricsReport, EveryNumberOfTheJsonStandsUnderItsName) {
  const Metrics m = made_up_metrics();
  const nlohmann::json metrics = metrics_json(m);
  const std::map<std::string, double> expected = {{"num_queries", 7},
                                                  {"num_queries_valid", 5},
                                                  {"num_gallery", 9},
                                                  {"recall_at_1", 0.11},
                                                  {"recall_at_10", 0.12},
                                                  {"r_precision", 0.13},
                                                  {"map_at_r", 0.14},
                                                  {"map", 0.15},
                                                  {"roc_auc", 0.16},
                                                  {"jsd", 0.17},
                                                  {"roc_auc_error_bound", 0.001},
                                                  {"pos_mean", 0.18},
                                                  {"pos_var", 0.19},
                                                  {"neg_mean", 0.21},
                                                  {"neg_var", 0.22},
                                                  {"dists_intra", 0.23},
                                                  {"dists_inter", 0.24},
                                                  {"num_pairs_positive", 1234},
                                                  {"num_pairs_negative", 5678}};
  for (const auto& [key, value] : expected) EXPECT_EQ(metrics.at(key), value) << key;
  EXPECT_EQ(intervals_json(m, kIntervals),
            nlohmann::json::parse(
                R"({"confidence": 0.9, "resamples": 1000, "over": "classes", "units": 12,
                "recall_at_1": [0.31, 0.32], "recall_at_10": [0.33, 0.34],
                "r_precision": [0.35, 0.36], "map_at_r": [0.37, 0.38], "map": [0.39, 0.41]})"));
  EXPECT_EQ(pairs_json(m), nlohmann::json::parse(R"({
                "histogram": {"low": -1, "high": 1, "positive": [1, 2], "negative": [3, 4]},
                "curve": {"threshold": [0.51, 0.55], "false_positive_rate": [0.52, 0.56],
                          "recall": [0.53, 0.57], "precision": [0.54, 0.58]}})"));
}

TEST(MetricsReport, EveryNumberOfTheTableStandsInItsLine) {
  const std::string table = metrics_table("e.h5", made_up_metrics(), "sop", &kIntervals);
  EXPECT_TRUE(holds(table, "\n5 queries with a relevant candidate; left out: 2 without\n"));
  EXPECT_TRUE(holds(table, "\n90 % intervals, from 1,000 resamples of 12 classes\n"));
  const std::pair<const char*, const char*> lines[] = {
      {"R@1", "0.1100   0.3100 to 0.3200; sop"},
      {"R@10", "0.1200   0.3300 to 0.3400; sop"},
      {"R-Precision", "0.1300   0.3500 to 0.3600; sop"},
      {"MAP@R", "0.1400   0.3700 to 0.3800; sop"},
      {"mAP", "0.1500   0.3900 to 0.4100; sop"},
      {"ROC-AUC", "0.1600   within 1.0e-03, from a histogram"},
      {"JSD", "0.1700   200 bins over [-1, 1]"},
      {"positives", "0.1800   mean score; variance 0.1900; 1,234 pairs"},
      {"negatives", "0.2100   mean score; variance 0.2200; 5,678 pairs"},
      {"dists@intra", "0.2300   cosine distance inside classes"},
      {"dists@inter", "0.2400   cosine distance between class centres"}};
  for (const auto& [name, rest] : lines) {
    EXPECT_TRUE(holds(table, fmt::format("\n  {:<18}{}\n", name, rest)));
  }
}

}  // namespace
}  // namespace rk
