// eval --compare: evaluates two runs on the same images, or two files of embeddings of the same
// images, with the confidence interval of their difference.
#pragma once

#include "engine/device/context.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/file_options.h"
#include "tools/eval/inputs/network_options.h"
#include "tools/eval/measure.h"
#include "tools/eval/report_options.h"
#include "tools/eval/statistics.h"

namespace rk {

// Whether this is a run or a checkpoint, not a file of embeddings.
bool is_run(const std::string& name);
// The checkpoint of a run: best.h5 if `run` is a folder, or the file itself.
std::string checkpoint_of_run(const std::string& run);

struct CompareOptions {
  const FileOptions& files;
  const NetworkOptions& network;  // without data: files of embeddings are compared
  const MeasureOptions& measures;
  const StatisticsOptions& statistics;
  const ReportOptions& report;
};

// Prints both evaluations and their difference; writes the report and the JSON if requested.
void compare(const Context& context, const CompareOptions& options, const CommonOptions& common);

}  // namespace rk
