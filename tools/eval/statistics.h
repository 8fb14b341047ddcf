// eval's optional additions to the metrics: intervals, tables by class and category, curves, NMI.
#pragma once

#include "engine/device/context.h"
#include "retrieval/statistics/bootstrap.h"
#include "retrieval/statistics/clustering.h"
#include "retrieval/statistics/per_class.h"
#include "tools/cli/cli.h"
#include "tools/common/metrics_report.h"
#include "tools/eval/inputs/described_rows.h"

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

// The level of --confidence; 0.95 if not given.
double confidence_of(const StatisticsOptions& options);

// The intervals of the metrics of these queries at that level; those of the second run's gain over
// the first. The metrics must have per_query. Stop if a signal asks to.
RankIntervals draw_intervals(const Context& context, const DescribedRows& queries,
                             const Metrics& metrics, const StatisticsOptions& options,
                             const CommonOptions& common);
RankIntervals difference_of(const Context& context, const DescribedRows& queries,
                            const Metrics& first, const Metrics& second,
                            const StatisticsOptions& options, const CommonOptions& common);

// Checks possible before measuring: throws InputError if the rows cannot be clustered.
void check_statistics(const Context& context, const EvaluatedRows& rows,
                      const StatisticsOptions& options);

// intervals: from draw_intervals(), where --confidence is given. Stops if a signal asks to.
// `metrics` must have per_query if need_per_query().
Statistics take_statistics(const Context& context, const EvaluatedRows& rows,
                           const Metrics& metrics, const std::optional<RankIntervals>& intervals,
                           const StatisticsOptions& options, const CommonOptions& common);

// The text after the table of metrics: NMI, and the ten hardest classes and categories.
std::string statistics_text(const Statistics& statistics, const DescribedRows& queries);

// Adds intervals, per_class and per_category, and NMI to json["metrics"], if requested.
void add_statistics(const Statistics& statistics, const DescribedRows& queries,
                    const Metrics& metrics, const StatisticsOptions& options, nlohmann::json& json);

}  // namespace rk
