// The queries of a report with their first results; words, marks and frames tell right from wrong
// ones.
#pragma once

#include "retrieval/report/report.h"

#include <string>

namespace rk {

// A section's contents.
std::string query_browser(const Report& report);

}  // namespace rk
