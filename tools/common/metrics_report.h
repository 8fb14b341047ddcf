// Formats metrics for people (tables) and for scripts (JSON).
#pragma once

#include "retrieval/evaluate.h"
#include "retrieval/protocols/vehicleid_official.h"
#include "retrieval/statistics/bootstrap.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace rk {

// Null if the value is not finite.
nlohmann::json number_or_null(double value);

// The keys of `eval --json` ("recall_at_1", "map_at_r", ...), undefined values as null; with
// `per_query` if the metrics have it.
nlohmann::json metrics_json(const Metrics& metrics);

// The protocol in one line: "against themselves, self removed by index; ties count against the
// query".
std::string protocol_text(const Metrics& metrics);

// The protocol in a few words, to print beside a number: "among themselves, camera rule".
std::string protocol_name(const Metrics& metrics);

// The histograms of the pairs and the points of their curves: {"histogram": {"low", "high",
// "positive", "negative"}, "curve": {"threshold", "false_positive_rate", "recall", "precision"}}.
nlohmann::json pairs_json(const Metrics& metrics);

struct Intervals {
  double confidence = 0.95;
  std::string over;  // the resampled unit: "classes"
  RankIntervals values;
};

// {"confidence", "resamples", "over", "units", "recall_at_1": [low, high], ...}
nlohmann::json intervals_json(const Metrics& metrics, const Intervals& intervals);

// Means over draws under the keys of metrics_json(), each with a deviation
// ("recall_at_1_deviation"), and "per_draw".
nlohmann::json draws_json(const DrawnMetrics& metrics, const DrawOptions& options);

// Two lines: how many queries and candidates there are, how they are searched, and how many queries
// have something to find. `protocol`: its name; empty: it has none.
std::string queries_text(const Metrics& metrics, const std::string& protocol = "");

// A table with the protocol above it and the protocol's name beside every number. `what` names the
// data, `protocol` the protocol if it has a name. `intervals` may be nullptr.
std::string metrics_table(const std::string& what, const Metrics& metrics,
                          const std::string& protocol = "", const Intervals* intervals = nullptr);
std::string draws_table(const std::string& what, const DrawnMetrics& metrics,
                        const DrawOptions& options, const std::string& protocol);

// "60,502"
std::string grouped(std::int64_t value);

}  // namespace rk
