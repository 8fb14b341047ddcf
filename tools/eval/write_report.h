// Builds eval's report (retrieval/report/report.h) from rows, metrics and checkpoints.
#pragma once

#include "engine/device/context.h"
#include "retrieval/report/report.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/described_rows.h"
#include "tools/eval/statistics.h"

#include <optional>
#include <string>
#include <vector>

namespace rk {

// The part of one network: its metrics with their intervals, neighbours, the record of its run.
// checkpoint: empty if the rows come from a file. Stops if a signal asks to.
ReportedRun reported_run(const Context& context, const std::string& name,
                         const std::string& checkpoint, const EvaluatedRows& rows,
                         const Metrics& metrics, const RankIntervals& intervals,
                         const CommonOptions& common);

struct ReportFile {
  std::string path{};
  std::string title{};
  std::string protocol{};  // its name, if it has one
  std::string data{};      // queries and gallery, in words
  const EvaluatedRows& rows;
  const StatisticsOptions& statistics;
  std::vector<std::string> notes{};  // what the figures must be read with
  std::vector<ReportedRun> runs{};
  std::optional<RankIntervals> difference{};
  bool of_networks = true;  // the rows come from networks, not from files
};

// Replaces the file, and prints its path to standard error.
void write_report(const Context& context, ReportFile file, const CommonOptions& common);

}  // namespace rk
