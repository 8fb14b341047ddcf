#include "tools/eval/statistics.h"

#include "engine/base/english.h"
#include "engine/base/printable.h"
#include "engine/system/signals.h"
#include "retrieval/metric_text.h"
#include "retrieval/passes/largest_score.h"
#include "retrieval/statistics/mutual_information.h"
#include "tools/cli/with_progress.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

namespace rk {
namespace {

constexpr std::size_t kHardest = 10;

// The labels of all rows that are clustered: the queries', then the gallery's.
std::vector<std::int64_t> labels_of(const EvaluatedRows& rows) {
  std::vector<std::int64_t> labels = rows.queries.set.labels;
  if (rows.gallery) {
    const std::vector<std::int64_t>& more = rows.gallery->set.labels;
    labels.insert(labels.end(), more.begin(), more.end());
  }
  return labels;
}

Clustering cluster(const Context& context, const EvaluatedRows& rows,
                   const std::vector<std::int64_t>& labels, const CommonOptions& common) {
  ClusteringOptions options;
  options.clusters = std::ssize(std::set<std::int64_t>(labels.begin(), labels.end()));
  options.seed = common.seed;
  return with_progress({"clustering", 100, "%", common.quiet}, options, [&] {
    return with_views(rows, [&](const EmbeddingView& queries, const EmbeddingView* gallery) {
      return k_means(context, queries, gallery, options);
    });
  });
}

// `name_of`: returns the name of a row.
template <class F>
std::string hardest_text(const char* what, const std::vector<GroupMetrics>& rows, F&& name_of) {
  std::string out = fmt::format("\nhardest {} of {}, by MAP@R\n", what,
                                grouped(static_cast<std::int64_t>(rows.size())));
  out += fmt::format("  {:>8}{:>8}{:>8}{:>9}  \n", "R@1", "MAP@R", "mAP", "queries");
  for (const GroupMetrics& row : hardest(rows, kHardest)) {
    out += fmt::format("  {:>8}{:>8}{:>8}{:>9}  {}\n", text_of_metric(row.recall_at_1),
                       text_of_metric(row.map_at_r), text_of_metric(row.map),
                       grouped(row.queries_valid), one_line(name_of(row.group)));
  }
  return out;
}

nlohmann::json row_json(const GroupMetrics& row) {
  return {{"queries", row.queries},
          {"queries_valid", row.queries_valid},
          {"recall_at_1", number_or_null(row.recall_at_1)},
          {"r_precision", number_or_null(row.r_precision)},
          {"map_at_r", number_or_null(row.map_at_r)},
          {"map", number_or_null(row.map)}};
}

BootstrapOptions bootstrap_options(const DescribedRows& queries, const StatisticsOptions& options,
                                   const CommonOptions& common) {
  BootstrapOptions out;
  out.confidence = confidence_of(options);
  out.seed = common.seed;
  if (options.resample == "classes") out.classes = queries.set.labels;
  return out;
}

// `draw` is given the options; the bar stands while it draws.
template <class Draw>
RankIntervals with_options(const DescribedRows& queries, const StatisticsOptions& options,
                           const CommonOptions& common, Draw&& draw) {
  BootstrapOptions drawing = bootstrap_options(queries, options, common);
  return with_progress({"intervals", 100, "%", common.quiet}, drawing, [&] {
    RankIntervals found = draw(drawing);
    return interrupted() ? std::nullopt : std::optional(std::move(found));
  });
}

}  // namespace

void StatisticsOptions::add_to(Flags& flags) {
  flags
      .add("--confidence", confidence,
           "add intervals that hold the metrics over all such classes in this share of test sets, "
           "by resampling: 0.95. Two results whose intervals lie apart differ by more than the "
           "choice of pictures; another seed of the training may differ by more")
      .check(in_range(0.5, 0.999))
      .default_text("");
  flags
      .add(
          "--resample", resample,
          "what is drawn for the intervals of --confidence, --report and --compare: whole classes, "
          "since queries of one class share what they have to find, or single queries (narrower)")
      .check(one_of({"classes", "queries"}));
  flags.add_switch("--per-class", per_class,
                   "print the ten hardest classes and categories; all of them go into the JSON");
  flags.add_switch(
      "--curves", curves,
      "add the histograms of scores and the ROC and precision-recall curves to the JSON");
  flags.add_switch(
      "--nmi", nmi,
      "also cluster the rows by k-means, as many clusters as classes, 20 iterations by "
      "--seed, on the CPU. Takes up to 44 x classes / rows times as long as all other "
      "metrics: 8 times for the test set of SOP");
}

double confidence_of(const StatisticsOptions& options) {
  return options.confidence > 0 ? options.confidence : BootstrapOptions{}.confidence;
}

RankIntervals draw_intervals(const Context& context, const DescribedRows& queries,
                             const Metrics& metrics, const StatisticsOptions& options,
                             const CommonOptions& common) {
  return with_options(queries, options, common, [&](const BootstrapOptions& drawing) {
    return bootstrap(context, metrics.per_query, metrics.recall_at, drawing);
  });
}

RankIntervals difference_of(const Context& context, const DescribedRows& queries,
                            const Metrics& first, const Metrics& second,
                            const StatisticsOptions& options, const CommonOptions& common) {
  return with_options(queries, options, common, [&](const BootstrapOptions& drawing) {
    return bootstrap_difference(context, first.per_query, second.per_query, first.recall_at,
                                drawing);
  });
}

void check_statistics(const Context& context, const EvaluatedRows& rows,
                      const StatisticsOptions& options) {
  if (!options.nmi) return;
  with_views(rows, [&](const EmbeddingView& queries, const EmbeddingView* gallery) {
    return largest_score_of_any(context, queries, gallery);
  });
}

Statistics take_statistics(const Context& context, const EvaluatedRows& rows,
                           const Metrics& metrics, const std::optional<RankIntervals>& intervals,
                           const StatisticsOptions& options, const CommonOptions& common) {
  const DescribedRows& queries = rows.queries;
  Statistics out;
  if (options.confidence > 0) out.intervals = {options.confidence, options.resample, *intervals};
  if (options.per_class) {
    out.classes = metrics_by_group(metrics.per_query, queries.set.labels);
    if (!queries.set.categories.empty()) {
      out.categories = metrics_by_group(metrics.per_query, queries.set.categories);
    }
  }
  if (options.nmi) {
    const std::vector<std::int64_t> labels = labels_of(rows);
    out.clustering = cluster(context, rows, labels, common);
    out.nmi = normalized_mutual_information(labels, out.clustering->cluster);
  }
  return out;
}

std::string statistics_text(const Statistics& statistics, const DescribedRows& queries) {
  std::string out;
  if (statistics.clustering) {
    const Clustering& found = *statistics.clustering;
    out += fmt::format("  {:<14}{:>10}   k-means, {} {} of which {} {} empty\n", "NMI",
                       text_of_metric(statistics.nmi), grouped(found.clusters),
                       noun_of(found.clusters, "cluster"), grouped(found.empty),
                       found.empty == 1 ? "is" : "are");
  }
  if (statistics.classes) {
    out += hardest_text("classes", *statistics.classes, [&](std::int64_t label) {
      return name_or_number(queries.set.classes, label);
    });
  }
  if (statistics.categories) {
    out += hardest_text("categories", *statistics.categories, [&](std::int64_t category) {
      return name_or_number(queries.categories, category);
    });
  }
  return out;
}

void add_statistics(const Statistics& statistics, const DescribedRows& queries,
                    const Metrics& metrics, const StatisticsOptions& options,
                    nlohmann::json& json) {
  if (statistics.intervals) json["intervals"] = intervals_json(metrics, *statistics.intervals);
  if (options.curves) json["pairs"] = pairs_json(metrics);
  if (statistics.classes) {
    json["per_class"] = nlohmann::json::array();
    for (const GroupMetrics& row : *statistics.classes) {
      nlohmann::json entry = row_json(row);
      entry["label"] = row.group;
      if (!queries.set.classes.empty()) {
        entry["name"] = name_or_number(queries.set.classes, row.group);
      }
      json["per_class"].push_back(std::move(entry));
    }
  }
  if (statistics.categories) {
    json["per_category"] = nlohmann::json::array();
    for (const GroupMetrics& row : *statistics.categories) {
      nlohmann::json entry = row_json(row);
      entry["category"] = row.group;
      if (!queries.categories.empty()) {
        entry["name"] = name_or_number(queries.categories, row.group);
      }
      json["per_category"].push_back(std::move(entry));
    }
  }
  if (!statistics.clustering) return;
  json["metrics"]["nmi"] = statistics.nmi;
  json["metrics"]["nmi_clusters"] = statistics.clustering->clusters;
  json["metrics"]["nmi_empty_clusters"] = statistics.clustering->empty;
  json["metrics"]["nmi_iterations"] = statistics.clustering->iterations;
}

}  // namespace rk
