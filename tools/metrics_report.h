// Metrics as people and as scripts read them.
#pragma once

#include "retrieval/evaluate.h"

#include <nlohmann/json.hpp>

#include <string>

namespace rk {

// The keys of `eval --json` ("recall_at_1", "map_at_r", ...), undefined values as null; `per_query`
// is there when the metrics carry it.
nlohmann::json metrics_json(const Metrics& metrics);

// How the numbers were made, one line: "against themselves, self removed by index; ties count
// against the query".
std::string protocol_text(const Metrics& metrics);

// A table with the protocol above it; `what` names the data.
std::string metrics_table(const std::string& what, const Metrics& metrics);

// One line for a log: "R@1 0.6551  MAP@R 0.3012  mAP 0.3555".
std::string metrics_line(const Metrics& metrics);

}  // namespace rk
