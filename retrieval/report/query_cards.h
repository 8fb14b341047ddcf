// The queries of a report with their first results; words, marks and frames tell right from wrong
// ones.
#pragma once

#include "retrieval/report/report.h"

#include <cstdint>
#include <string>

namespace rk {

// "tabby", or "label 7" if classes have no names.
std::string class_name(const EmbeddingSet& set, std::int64_t label);

// A section's contents.
std::string query_browser(const Report& report);

}  // namespace rk
