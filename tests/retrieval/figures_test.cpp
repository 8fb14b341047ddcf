// A report's charts must draw the numbers that they are said to draw.
#include "retrieval/report/figures.h"

#include "data/images/encode_jpeg.h"
#include "data/images/resize.h"
#include "engine/base/integers.h"
#include "retrieval/report/html.h"
#include "retrieval/report/thumbnails.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string_view>

namespace rk {
namespace {

class Figures : public testing::Test {
 protected:
  double share() { return std::uniform_real_distribution(0.0, 1.0)(random_); }
  std::int64_t below(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }
  // Pairs in `bins` bins, of which about half, and those towards both ends, are empty.
  std::vector<std::int64_t> counts(std::int64_t bins) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(bins), 0);
    for (std::int64_t b = 1 + below(bins / 4); b < bins - 1 - below(bins / 4); ++b) {
      out[at(b)] = below(2) * below(1000);
    }
    out[at(bins / 2)] = 1 + below(1000);
    return out;
  }
  RecordedSet recorded() {
    return {.recall_at_1 = share(),
            .map_at_r = share(),
            .jsd = share(),
            .positives = counts(100),
            .negatives = counts(100)};
  }
  ReportedRun run(const std::string& name) {
    ReportedRun out{.name = name,
                    .metrics = {},
                    .intervals = {},
                    .neighbours = Neighbours(1, 1),
                    .record = std::nullopt,
                    .facts = {}};
    const std::int64_t most = 1 + below(60);  // the last rank of a first hit
    for (int q = 0; q < 200; ++q) {
      out.metrics.per_query.first_hit_rank.push_back(below(4) == 0 ? 0 : 1 + below(most));
      out.metrics.per_query.num_candidates.push_back(most + below(5));
    }
    out.metrics.num_pairs_positive = 1 + below(1000);
    out.metrics.num_pairs_negative = 1 + below(100000);
    out.metrics.pairs.roc_auc = share();
    out.metrics.pairs.roc_auc_error_bound = 0;
    out.metrics.pairs.jsd = share();
    out.metrics.pairs.positive_histogram = counts(PairMetrics::kJsdBins);
    out.metrics.pairs.negative_histogram = counts(PairMetrics::kJsdBins);
    for (int i = 0; i < 5; ++i) {
      out.metrics.pairs.curve.push_back({share(), 0.2 * i + 0.1, 0.1 * i + 0.5, share()});
    }
    out.record = LearningRecord{
        .epochs = {}, .evaluated = 1 + below(3), .loss = "", .held_out = "split val"};
    for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
      out.record->epochs.push_back({.epoch = epoch,
                                    .loss = epoch > 0 ? share() : std::nan(""),
                                    .held_out = recorded(),
                                    .training = recorded()});
    }
    return out;
  }
  Report report(int runs) {
    Report out;
    for (int r = 0; r < runs; ++r) out.runs.push_back(run(r == 0 ? "runs/a" : "runs/b"));
    return out;
  }

  std::mt19937 random_{static_cast<unsigned>(random_seed())};
};

// A line's name: with two runs, it begins with its run's.
std::string named(const Report& report, const ReportedRun& run, const std::string& what) {
  return report.runs.size() > 1 ? run.name + ", " + what : what;
}

const Series& series_of(const Chart& chart, std::string_view name) {
  const auto found = std::ranges::find(chart.series, name, &Series::name);
  EXPECT_NE(found, chart.series.end()) << chart.title << ": " << name;
  return found == chart.series.end() ? chart.series.front() : *found;
}

TEST_F(Figures, RecallIsTheShareOfFirstHits) {
  const Report made = report(2);
  ASSERT_TRUE(recall_chart(made).y.high.has_value());
  EXPECT_EQ(*recall_chart(made).y.high, 1.0);
  const Chart chart = recall_chart(made);
  ASSERT_EQ(chart.series.size(), 2U);
  for (const ReportedRun& run : made.runs) {
    const std::vector<std::int64_t>& ranks = run.metrics.per_query.first_hit_rank;
    const auto found = [&](double k) {
      return static_cast<double>(std::ranges::count_if(
          ranks, [&](std::int64_t rank) { return rank > 0 && static_cast<double>(rank) <= k; }));
    };
    const Series& line = series_of(chart, named(made, run, "R@k"));
    ASSERT_EQ(line.x.size(), line.y.size());
    EXPECT_EQ(line.x.front(), 1);
    const std::int64_t candidates = std::ranges::max(run.metrics.per_query.num_candidates);
    EXPECT_EQ(line.x.back(), static_cast<double>(std::max(std::ranges::max(ranks),
                                                          std::min<std::int64_t>(10, candidates))));
    EXPECT_TRUE(std::ranges::is_sorted(line.x, std::ranges::less_equal())) << "one k twice";
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      EXPECT_EQ(line.y[i], found(line.x[i]) / found(line.x.back())) << line.x[i];
    }
  }
}

TEST_F(Figures, CurvesHoldThePointsOfTheirRun) {
  for (const int runs : {1, 2}) {
    const Report made = report(runs);
    const Chart roc = roc_chart(made), precision = precision_chart(made);
    ASSERT_EQ(roc.series.size(), made.runs.size() + 1);
    for (const ReportedRun& run : made.runs) {
      std::vector<double> recall, false_rate, right;
      for (const PairCurvePoint& point : run.metrics.pairs.curve) {
        recall.push_back(point.recall);
        false_rate.push_back(point.false_positive_rate);
        right.push_back(point.precision);
      }
      const Series& of_precision = series_of(precision, runs > 1 ? run.name : "precision");
      // Any share of what is accepted first may be.
      right.insert(right.begin(), right.front());
      std::vector<double> found = recall;
      found.insert(found.begin(), 0);
      EXPECT_EQ(of_precision.x, found);
      EXPECT_EQ(of_precision.y, right);
      const Series& of_roc =
          series_of(roc, named(made, run, fmt::format("AUC {:.4f}", run.metrics.pairs.roc_auc)));
      recall.insert(recall.begin(), 0);
      false_rate.insert(false_rate.begin(), 0);
      EXPECT_EQ(of_roc.x, false_rate);
      EXPECT_EQ(of_roc.y, recall);
    }
    // Pairs accepted by chance are right as often as all pairs are.
    const Metrics& first = made.runs[0].metrics;
    const auto right = static_cast<double>(first.num_pairs_positive);
    const double chance = right / (right + static_cast<double>(first.num_pairs_negative));
    EXPECT_EQ(series_of(precision, "chance").y, (std::vector<double>{chance, chance}));
    EXPECT_EQ(series_of(roc, "chance").y, (std::vector<double>{0, 1}));
  }
}

// Bars over a histogram of these counts: their x is a bin's middle, their area 1. Of 200 bins two
// share a bar.
void expect_density(const Series& bars, const std::vector<std::int64_t>& counts) {
  const auto total =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  ASSERT_EQ(bars.x.size(), 100U);
  ASSERT_EQ(bars.y.size(), 100U);
  const std::size_t each = counts.size() / 100;
  double area = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    double pairs = 0;
    for (std::size_t b = i * each; b < (i + 1) * each; ++b) pairs += static_cast<double>(counts[b]);
    EXPECT_NEAR(bars.x[i], -0.99 + 0.02 * static_cast<double>(i), 1e-12);
    EXPECT_NEAR(bars.y[i], pairs / total / 0.02, 1e-9) << i;
    area += 0.02 * bars.y[i];
  }
  EXPECT_NEAR(area, 1, 1e-9);
}

TEST_F(Figures, SimilaritiesAreThoseOfTheEvaluatedEpochAndOfTheReport) {
  for (const int runs : {1, 2}) {
    const Report made = report(runs);
    const std::vector<Chart> charts = similarity_charts(made);
    ASSERT_EQ(charts.size(), 3 * made.runs.size());
    double low = 1, high = -1, top = 0;
    for (const Chart& chart : charts) {
      for (const Series& bars : chart.series) {
        for (std::size_t i = 0; i < bars.x.size(); ++i) {
          if (bars.y[i] == 0) continue;
          low = std::min(low, bars.x[i] - 0.01);
          high = std::max(high, bars.x[i] + 0.01);
          top = std::max(top, bars.y[i]);
        }
      }
    }
    for (std::size_t r = 0; r < made.runs.size(); ++r) {
      const ReportedRun& run = made.runs[r];
      const RecordedEpoch& epoch = run.record->epochs[at(run.record->evaluated)];
      const auto expect_chart = [&](std::size_t which, const std::string& title, double jsd,
                                    const std::vector<std::int64_t>& positives,
                                    const std::vector<std::int64_t>& negatives) {
        const Chart& chart = charts[3 * r + which];
        EXPECT_EQ(chart.title, named(made, run, title));
        EXPECT_TRUE(holds(chart.description, fmt::format("JSD {:.4f}", jsd)));
        expect_density(series_of(chart, "same class"), positives);
        expect_density(series_of(chart, "other classes"), negatives);
        EXPECT_NEAR(chart.x.low.value(), low, 1e-9);
        EXPECT_NEAR(chart.x.high.value(), high, 1e-9);
        EXPECT_GE(chart.y.high.value(), top);
      };
      expect_chart(0, "Training classes", epoch.training.jsd, epoch.training.positives,
                   epoch.training.negatives);
      expect_chart(1, "Held out while training (split val)", epoch.held_out.jsd,
                   epoch.held_out.positives, epoch.held_out.negatives);
      const PairMetrics& here = run.metrics.pairs;
      expect_chart(2, "Evaluated here", here.jsd, here.positive_histogram, here.negative_histogram);
    }
  }
}

// Rows longer than 1 have scores that the bins cannot hold: what was recorded while training stays.
TEST_F(Figures, ScoresThatLeaveTheirRangeHaveNoHistogram) {
  for (const int runs : {1, 2}) {
    Report made = report(runs);
    made.scores_leave_range = true;
    const std::vector<Chart> charts = similarity_charts(made);
    ASSERT_EQ(charts.size(), 2 * made.runs.size());
    for (const Chart& chart : charts) {
      EXPECT_FALSE(holds(chart.title, "Evaluated here")) << chart.title;
    }
  }
}

TEST_F(Figures, EveryLossHasAnAxisOfItsOwn) {
  Report made = report(2);
  made.runs[0].record->loss = made.runs[1].record->loss = "fastap:bins=10";
  std::vector<Chart> charts = learning_charts(made);
  ASSERT_EQ(charts.size(), 4U);
  EXPECT_EQ(charts[0].title, "Loss (fastap:bins=10)");
  EXPECT_EQ(charts[0].series.size(), 2U);
  made.runs[1].record->loss = "roadmap";
  charts = learning_charts(made);
  ASSERT_EQ(charts.size(), 5U);
  EXPECT_EQ(charts[0].title, "Loss (fastap:bins=10)");
  EXPECT_EQ(charts[1].title, "Loss (roadmap)");
  for (std::size_t r = 0; r < 2; ++r) {
    ASSERT_EQ(charts[r].series.size(), 1U);
    EXPECT_EQ(charts[r].series[0].name, named(made, made.runs[r], "training batches"));
    EXPECT_EQ(charts[r].series[0].y.front(), made.runs[r].record->epochs[1].loss);
  }
}

TEST_F(Figures, LearningIsThatOfTheRecord) {
  for (const int runs : {1, 2}) {
    const Report made = report(runs);
    const std::vector<Chart> charts = learning_charts(made);
    ASSERT_EQ(charts.size(), 4U);
    EXPECT_EQ(charts[0].title, "Loss");
    for (const ReportedRun& run : made.runs) {
      const Series& loss = series_of(charts[0], named(made, run, "training batches"));
      EXPECT_EQ(loss.x, (std::vector<double>{1, 2, 3, 4})) << "none before training";
      for (std::size_t i = 0; i < loss.y.size(); ++i) {
        EXPECT_EQ(loss.y[i], run.record->epochs[i + 1].loss);
      }
    }
    const std::pair<const char*, double RecordedSet::*> metrics[] = {
        {"R@1", &RecordedSet::recall_at_1},
        {"MAP@R", &RecordedSet::map_at_r},
        {"JSD", &RecordedSet::jsd}};
    for (std::size_t m = 0; m < 3; ++m) {
      const Chart& chart = charts[m + 1];
      EXPECT_EQ(chart.title, metrics[m].first);
      ASSERT_EQ(chart.marks.size(), made.runs.size());
      for (std::size_t r = 0; r < made.runs.size(); ++r) {
        const ReportedRun& run = made.runs[r];
        EXPECT_EQ(chart.marks[r].x, static_cast<double>(run.record->evaluated));
        const Series& held_out = series_of(chart, named(made, run, "held out"));
        const Series& training = series_of(chart, named(made, run, "training classes"));
        EXPECT_EQ(held_out.x, (std::vector<double>{0, 1, 2, 3, 4}));
        EXPECT_EQ(training.x, held_out.x);
        for (std::size_t i = 0; i < held_out.y.size(); ++i) {
          EXPECT_EQ(held_out.y[i], run.record->epochs[i].held_out.*metrics[m].second);
          EXPECT_EQ(training.y[i], run.record->epochs[i].training.*metrics[m].second);
        }
      }
    }
  }
}

// The longer side of a thumbnail has 96 pixels, unless the picture is smaller.
TEST(Thumbnail, KeepsThePicturesShape) {
  struct Case {
    int width, height, small_width, small_height;
  };
  for (const Case& each : {Case{300, 100, 96, 32}, Case{100, 300, 32, 96}, Case{97, 1, 96, 1},
                           Case{500, 1, 96, 1}, Case{96, 50, 96, 50}, Case{20, 30, 20, 30}}) {
    Image image(each.width, each.height);
    for (std::size_t i = 0; i < image.bytes(); ++i) {
      image.data()[i] = static_cast<std::uint8_t>(i * 7 % 251);
    }
    EXPECT_EQ(
        thumbnail_uri(image),
        data_uri("image/jpeg", encode_jpeg(resize(image, each.small_width, each.small_height), 72)))
        << each.width << " x " << each.height;
  }
}

}  // namespace
}  // namespace rk
