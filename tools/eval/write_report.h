// eval's report (retrieval/report/report.h) from what eval has: rows, metrics, checkpoints.
#pragma once

#include "engine/device/context.h"
#include "retrieval/report/report.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/rows.h"
#include "tools/eval/statistics.h"

#include <optional>
#include <string>
#include <vector>

namespace rk {

// One network's part: intervals, neighbours, what its run recorded. `metrics` with per_query;
// checkpoint: empty where rows come from a file. Stops where a signal asks to.
ReportedRun reported_run(const Context& context, const std::string& name,
                         const std::string& checkpoint, const Rows& queries, const Rows* gallery,
                         const Metrics& metrics, const StatisticsOptions& statistics,
                         const CommonOptions& common);

// The interval of what the second run gains over the first.
RankIntervals difference_of(const Context& context, const Rows& queries, const Metrics& first,
                            const Metrics& second, const StatisticsOptions& statistics,
                            const CommonOptions& common);

struct ReportFile {
  std::string path{};
  std::string title{};
  std::string protocol{};  // its name, where it has one
  const Rows& queries;
  const Rows* gallery = nullptr;
  const StatisticsOptions& statistics;
  std::vector<ReportedRun> runs{};
  std::optional<RankIntervals> difference{};
};

// Replaces the file, and says on standard error where it is.
void write_report(const Context& context, ReportFile file, const CommonOptions& common);

}  // namespace rk
