// How many pairs have which similarity, as a run records it of every epoch:
//   {"bins": 100, "first": 41, "positives": [...], "negatives": [...]}
// The bins are of equal width over [-1, 1], and the lists begin with bin `first`: those around them
// are empty.
#pragma once

#include "retrieval/evaluate.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <vector>

namespace rk {

struct SimilarityCounts {
  std::vector<std::int64_t> positives, negatives;  // all bins; both empty where nothing is known
};

// An empty object without pair metrics.
nlohmann::ordered_json similarity_counts_json(const Metrics& metrics);

// Of what anyone may have written; nothing is known where it makes no sense.
SimilarityCounts read_similarity_counts(const nlohmann::ordered_json& counts);

}  // namespace rk
