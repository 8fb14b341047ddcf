// What eval adds to the metrics on demand: intervals, tables by class and category, curves, NMI.
#pragma once

#include "engine/device/context.h"
#include "retrieval/statistics/bootstrap.h"
#include "retrieval/statistics/clustering.h"
#include "retrieval/statistics/per_class.h"
#include "tools/cli/cli.h"
#include "tools/common/metrics_report.h"
#include "tools/eval/inputs/rows.h"

#include <optional>
#include <string>
#include <vector>

namespace rk {

struct StatisticsOptions {
  double confidence = 0;  // 0: no intervals
  std::string resample = "classes";
  bool per_class = false;
  bool curves = false;
  bool nmi = false;

  void add_to(Flags& flags);
  bool given() const { return confidence > 0 || per_class || curves || nmi; }
  bool need_per_query() const { return confidence > 0 || per_class; }
};

struct Statistics {
  std::optional<Intervals> intervals;
  std::optional<std::vector<GroupMetrics>> classes, categories;  // of the queries
  std::optional<Clustering> clustering;
  double nmi = 0;
};

// What --confidence asks for; 0.95 where it was not given.
double confidence_of(const StatisticsOptions& options);

// Of intervals over these queries, at that confidence.
BootstrapOptions bootstrap_options(const Rows& queries, const StatisticsOptions& options,
                                   const CommonOptions& common);

// What can be told before anything is measured: InputError where rows cannot be clustered.
void check_statistics(const Context& context, const Rows& queries, const Rows* gallery,
                      const StatisticsOptions& options);

// Stops where a signal asks to. `metrics` with per_query where need_per_query() says so.
Statistics take_statistics(const Context& context, const Rows& queries, const Rows* gallery,
                           const Metrics& metrics, const StatisticsOptions& options,
                           const CommonOptions& common);

// What follows the table of metrics: NMI, and the ten hardest classes and categories.
std::string statistics_text(const Statistics& statistics, const Rows& queries);

// Adds intervals, per_class, per_category, and to json["metrics"] what NMI was asked for.
void add_statistics(const Statistics& statistics, const Rows& queries, const Metrics& metrics,
                    const StatisticsOptions& options, nlohmann::json& json);

}  // namespace rk
