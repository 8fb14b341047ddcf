#include "retrieval/report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace rk {
namespace {

constexpr std::size_t kShownBins = 100;
constexpr std::int64_t kLeastRanks = 10;  // of the curve of R@k

struct Similarities {
  std::string title;
  double jsd;
  std::vector<std::int64_t> positives, negatives;
};

// Counts as a density of area 1 over [-1, 1].
std::vector<double> densities(const std::vector<std::int64_t>& counts) {
  const std::size_t together = std::max<std::size_t>(1, counts.size() / kShownBins);
  const auto total = static_cast<double>(
      std::max<std::int64_t>(1, std::accumulate(counts.begin(), counts.end(), std::int64_t{0})));
  const double width = 2.0 * static_cast<double>(together) / static_cast<double>(counts.size());
  std::vector<double> out(counts.size() / together, 0.0);
  for (std::size_t i = 0; i < out.size() * together; ++i) {
    out[i / together] += static_cast<double>(counts[i]) / total / width;
  }
  return out;
}

Series steps(const std::string& name, const std::vector<std::int64_t>& counts, int colour) {
  Series s{.name = name,
           .y = densities(counts),
           .colour = colour,
           .dashed = colour > 0,
           .form = Series::Form::kSteps};
  for (std::size_t i = 0; i < s.y.size(); ++i) {
    s.x.push_back(-1 + 2 * (static_cast<double>(i) + 0.5) / static_cast<double>(s.y.size()));
  }
  return s;
}

bool has_pairs(const std::vector<std::int64_t>& counts) {
  return std::any_of(counts.begin(), counts.end(), [](std::int64_t n) { return n > 0; });
}

const RecordedEpoch* evaluated_epoch(const ReportedRun& run) {
  if (!run.record) return nullptr;
  for (const RecordedEpoch& epoch : run.record->epochs) {
    if (epoch.epoch == run.record->evaluated) return &epoch;
  }
  return nullptr;
}

// The similarities of one run, in display order.
std::vector<Similarities> similarities_of(const Report& report, const ReportedRun& run) {
  std::vector<Similarities> all;
  if (const RecordedEpoch* epoch = evaluated_epoch(run)) {
    all.push_back({"Training classes", epoch->training.jsd, epoch->training.positives,
                   epoch->training.negatives});
    all.push_back({run.record->held_out.empty()
                       ? std::string("Held out while training")
                       : fmt::format("Held out while training ({})", run.record->held_out),
                   epoch->held_out.jsd, epoch->held_out.positives, epoch->held_out.negatives});
  }
  if (!report.scores_leave_range) {
    all.push_back({"Evaluated here", run.metrics.pairs.jsd, run.metrics.pairs.positive_histogram,
                   run.metrics.pairs.negative_histogram});
  }
  std::erase_if(all, [](const Similarities& each) {
    return !has_pairs(each.positives) && !has_pairs(each.negatives);
  });
  return all;
}

void widen(const std::vector<std::int64_t>& counts, double& low, double& high, double& top) {
  if (counts.empty()) return;
  const std::vector<double> density = densities(counts);
  for (std::size_t i = 0; i < density.size(); ++i) {
    if (density[i] == 0) continue;
    const auto bins = static_cast<double>(density.size());
    low = std::min(low, -1 + 2 * static_cast<double>(i) / bins);
    high = std::max(high, -1 + 2 * static_cast<double>(i + 1) / bins);
    top = std::max(top, density[i]);
  }
}

// A line's name in the legend: with two runs, the run's name is added.
std::string named(const Report& report, const ReportedRun& run, const std::string& what) {
  if (report.runs.size() < 2) return what;
  return what.empty() ? run.name : fmt::format("{}, {}", run.name, what);
}

Series line(std::string name, int colour, bool dashed) {
  return {.name = std::move(name), .colour = colour, .dashed = dashed};
}

// A learning chart of one metric of both sets.
Chart chart_of_sets(const Report& report, const std::string& title, const std::string& remark,
                    double RecordedSet::*value) {
  Chart chart{.title = title,
              .description = remark,
              .x = {.label = "epoch", .whole = true},
              .y = {.label = title}};
  int colour = 0;
  for (const ReportedRun& run : report.runs) {
    if (!run.record) continue;
    // One run: a colour for each set; two: a colour for each run.
    Series held_out = line(named(report, run, "held out"), colour, false);
    Series training =
        line(named(report, run, "training classes"), report.runs.size() > 1 ? colour : 1, true);
    for (const RecordedEpoch& epoch : run.record->epochs) {
      for (auto [series, set] :
           {std::pair{&held_out, &epoch.held_out}, std::pair{&training, &epoch.training}}) {
        if (!std::isfinite(set->*value)) continue;
        series->x.push_back(static_cast<double>(epoch.epoch));
        series->y.push_back(set->*value);
      }
    }
    for (Series& series : {std::ref(held_out), std::ref(training)}) {
      if (!series.x.empty()) chart.series.push_back(std::move(series));
    }
    if (run.record->evaluated >= 0) {
      chart.marks.push_back({static_cast<double>(run.record->evaluated),
                             named(report, run, "evaluated here"), colour});
    }
    ++colour;
  }
  return chart;
}

// A chart for each loss, since values of different losses are not comparable.
std::vector<Chart> loss_charts(const Report& report) {
  std::vector<Chart> charts;
  std::map<std::string, std::size_t> chart_of;
  int colour = 0;
  for (const ReportedRun& run : report.runs) {
    if (!run.record) continue;
    Series loss = line(named(report, run, "training batches"), colour, colour > 0);
    ++colour;
    for (const RecordedEpoch& epoch : run.record->epochs) {
      if (!std::isfinite(epoch.loss)) continue;
      loss.x.push_back(static_cast<double>(epoch.epoch));
      loss.y.push_back(epoch.loss);
    }
    if (loss.x.empty()) continue;
    const std::string& name = run.record->loss;
    const auto [chart, is_new] = chart_of.try_emplace(name, charts.size());
    if (is_new) {
      charts.push_back({.title = name.empty() ? "Loss" : fmt::format("Loss ({})", name),
                        .description = "Mean over an epoch's batches.",
                        .x = {.label = "epoch", .whole = true},
                        .y = {.label = "loss"}});
    }
    charts[chart->second].series.push_back(std::move(loss));
  }
  return charts;
}

}  // namespace

std::vector<Chart> similarity_charts(const Report& report) {
  std::vector<std::pair<const ReportedRun*, Similarities>> all;
  double low = 1, high = -1, top = 0;
  for (const ReportedRun& run : report.runs) {
    for (Similarities& each : similarities_of(report, run)) {
      widen(each.positives, low, high, top);
      widen(each.negatives, low, high, top);
      all.emplace_back(&run, std::move(each));
    }
  }
  std::vector<Chart> charts;
  for (const auto& [run, each] : all) {
    Chart chart{.title = named(report, *run, each.title),
                .description = std::isfinite(each.jsd)
                                   ? fmt::format("JSD {:.4f} over bins of {:g}: 0 where both lie "
                                                 "alike, 1 where no bin holds both.",
                                                 each.jsd, PairMetrics::kJsdBinWidth)
                                   : std::string("One side has no pairs."),
                .x = {.label = "similarity", .low = low, .high = high},
                .y = {.label = "density", .low = 0.0, .high = top * 1.05}};
    if (has_pairs(each.negatives))
      chart.series.push_back(steps("other classes", each.negatives, 1));
    if (has_pairs(each.positives)) chart.series.push_back(steps("same class", each.positives, 0));
    charts.push_back(std::move(chart));
  }
  return charts;
}

Chart recall_chart(const Report& report) {
  Chart chart{.title = "Recall at k",
              .description = "Share of queries with a right result among the first k.",
              .x = {.label = "k", .whole = true, .logarithmic = true},
              .y = {.label = "R@k", .high = 1.0}};
  int colour = 0;
  for (const ReportedRun& run : report.runs) {
    std::vector<std::int64_t> ranks;
    for (const std::int64_t rank : run.metrics.per_query.first_hit_rank) {
      if (rank > 0) ranks.push_back(rank);
    }
    std::sort(ranks.begin(), ranks.end());
    Series s = line(named(report, run, "R@k"), colour, colour > 0);
    ++colour;
    // Twelve points per power of ten, up to the k at which all queries have found something, at
    // least 10 where there are so many candidates.
    const std::vector<std::int64_t>& candidates = run.metrics.per_query.num_candidates;
    const std::int64_t last =
        ranks.empty() ? 0
                      : std::max(ranks.back(), std::min(kLeastRanks, std::ranges::max(candidates)));
    std::int64_t before = 0;
    for (int i = 0; before < last; ++i) {
      const auto k = std::min(std::llround(std::pow(10.0, i / 12.0)), static_cast<long long>(last));
      if (k == before) continue;
      before = k;
      const auto found = std::upper_bound(ranks.begin(), ranks.end(), k) - ranks.begin();
      s.x.push_back(static_cast<double>(k));
      s.y.push_back(static_cast<double>(found) / static_cast<double>(ranks.size()));
    }
    chart.series.push_back(std::move(s));
  }
  return chart;
}

// The AUC, with its error bound if that is visible in the digits shown.
std::string auc_text(const Metrics& metrics) {
  if (std::isnan(metrics.pairs.roc_auc)) return "AUC undefined";
  const std::string text = fmt::format("AUC {:.4f}", metrics.pairs.roc_auc);
  const double bound = metrics.pairs.roc_auc_error_bound;
  return bound < 5e-5 ? text : fmt::format("{} (within {:.4f})", text, bound);
}

Chart roc_chart(const Report& report) {
  Chart chart{.title = "ROC: accepting pairs by their similarity",
              .description =
                  "The higher above the diagonal, the better a threshold tells pairs of one class "
                  "from others.",
              .x = {.label = "false positive rate", .low = 0.0, .high = 1.0},
              .y = {.label = "true positive rate", .low = 0.0, .high = 1.0}};
  int colour = 0;
  for (const ReportedRun& run : report.runs) {
    Series s = line(named(report, run, auc_text(run.metrics)), colour, colour > 0);
    ++colour;
    s.x.push_back(0);
    s.y.push_back(0);
    for (const PairCurvePoint& point : run.metrics.pairs.curve) {
      s.x.push_back(point.false_positive_rate);
      s.y.push_back(point.recall);
    }
    chart.series.push_back(std::move(s));
  }
  chart.series.push_back({.name = "chance", .x = {0, 1}, .y = {0, 1}, .colour = 3, .dashed = true});
  return chart;
}

Chart precision_chart(const Report& report) {
  Chart chart{.title = "Precision and recall of pairs",
              .description =
                  "Of the pairs that a threshold accepts, the share of one class; over the share "
                  "of such pairs that it finds.",
              .x = {.label = "recall", .low = 0.0, .high = 1.0},
              .y = {.label = "precision", .low = 0.0, .high = 1.0}};
  int colour = 0;
  for (const ReportedRun& run : report.runs) {
    Series s =
        line(named(report, run, report.runs.size() > 1 ? "" : "precision"), colour, colour > 0);
    ++colour;
    const std::vector<PairCurvePoint>& points = run.metrics.pairs.curve;
    if (!points.empty()) {
      // Of the pairs at the highest threshold any share may be accepted.
      s.x.push_back(0);
      s.y.push_back(points.front().precision);
    }
    for (const PairCurvePoint& point : points) {
      s.x.push_back(point.recall);
      s.y.push_back(point.precision);
    }
    chart.series.push_back(std::move(s));
  }
  const Metrics& first = report.runs.front().metrics;
  const auto pairs = static_cast<double>(first.num_pairs_positive + first.num_pairs_negative);
  const double share = static_cast<double>(first.num_pairs_positive) / std::max(pairs, 1.0);
  chart.series.push_back(
      {.name = "chance", .x = {0, 1}, .y = {share, share}, .colour = 3, .dashed = true});
  return chart;
}

std::vector<Chart> learning_charts(const Report& report) {
  std::vector<Chart> all = loss_charts(report);
  const auto add = [&](const std::string& title, const std::string& remark,
                       double RecordedSet::*value) {
    all.push_back(chart_of_sets(report, title, remark, value));
  };
  add("R@1", "Share of queries whose first result is right.", &RecordedSet::recall_at_1);
  add("MAP@R", "Where training classes rise and held-out ones do not, the network overfits.",
      &RecordedSet::map_at_r);
  add("JSD", "How far apart similarities of one class and of others lie.", &RecordedSet::jsd);
  std::erase_if(all, [](const Chart& chart) { return chart.series.empty(); });
  return all;
}

}  // namespace rk
