// The tables of a report: metrics with their intervals, and classes.
#pragma once

#include "retrieval/report/report.h"

#include <string>

namespace rk {

// For one run: the most important numbers in large type, then all numbers; for two: side by side
// with their difference.
std::string metrics_section(const Report& report);

// The hardest classes, or for two runs the classes that differ most, and the most confused classes.
std::string classes_section(const Report& report);

// In which settings two runs differ; empty for one run, and where nothing is known of one of them.
std::string settings_section(const Report& report);

}  // namespace rk
