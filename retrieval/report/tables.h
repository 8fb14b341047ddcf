// The tables of a report: metrics with their intervals, classes, and where it all comes from.
#pragma once

#include "retrieval/report/report.h"

#include <string>

namespace rk {

// Of one run: the most asked-for numbers in large letters, then all; of two: side by side with
// their difference.
std::string metrics_section(const Report& report);

// The hardest classes, or of two runs those that differ most, and which class is taken for which.
std::string classes_section(const Report& report);

std::string facts_list(const ReportFacts& facts);

}  // namespace rk
