// Retrieval metrics straight from their definition: every pair, every score in double. Shares
// nothing with retrieval/ but the structures that carry input and output.
#pragma once

#include "retrieval/evaluate.h"

#include <cstdint>
#include <vector>

namespace rk::reference {

struct PairScores {
  std::vector<double> positive, negative;  // of every (query, candidate) pair
};
PairScores pair_scores(const EmbeddingView& queries, const EmbeddingView* gallery);

// Includes per_query but not the curve over thresholds, which tests count from pair_scores().
Metrics brute_force(const EmbeddingView& queries, const EmbeddingView* gallery,
                    const std::vector<std::int64_t>& recall_at);

}  // namespace rk::reference
