// eval --compare: evaluates two runs on the same images, with the confidence interval of their
// difference.
#pragma once

#include "engine/device/context.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/network_options.h"
#include "tools/eval/measure.h"
#include "tools/eval/report_options.h"
#include "tools/eval/statistics.h"

namespace rk {

// The checkpoint of a run: best.h5 if `run` is a folder, or the file itself.
std::string checkpoint_of_run(const std::string& run);

// Prints both runs and their difference; writes the report and the JSON if requested.
void compare_runs(const Context& context, const NetworkOptions& network,
                  const MeasureOptions& measures, const StatisticsOptions& statistics,
                  const ReportOptions& options, const CommonOptions& common);

}  // namespace rk
