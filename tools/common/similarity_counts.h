// Histograms of the similarities of pairs, as a run records them for every epoch:
//   {"bins": 100, "first": 41, "positives": [...], "negatives": [...]}
// The bins have equal width over [-1, 1], and the lists begin with bin `first`; bins outside the
// lists are empty.
#pragma once

#include "retrieval/evaluate.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <vector>

namespace rk {

struct SimilarityCounts {
  std::vector<std::int64_t> positives, negatives;  // all bins; both empty: unknown
};

// Returns an empty object if there are no pair metrics.
nlohmann::ordered_json similarity_counts_json(const Metrics& metrics);

// Reads untrusted JSON; returns empty counts if it is invalid.
SimilarityCounts read_similarity_counts(const nlohmann::ordered_json& counts);

}  // namespace rk
