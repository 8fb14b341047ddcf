// eval --compare: two runs on the same images, with the interval of their difference.
#pragma once

#include "engine/device/context.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/network_options.h"
#include "tools/eval/measure.h"
#include "tools/eval/report_options.h"
#include "tools/eval/statistics.h"

namespace rk {

// The checkpoint of a run: best.h5 of a folder, or the file itself.
std::string checkpoint_of_run(const std::string& run);

// Prints both with their difference; writes report and JSON where they are asked for.
void compare_runs(const Context& context, const NetworkOptions& network,
                  const MeasureOptions& measures, const StatisticsOptions& statistics,
                  const ReportOptions& options, const CommonOptions& common);

}  // namespace rk
