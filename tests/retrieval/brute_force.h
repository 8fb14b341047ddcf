// Retrieval metrics straight from their definition: every score in double, every pair looked at.
// Shares nothing with retrieval/ but the structures that carry input and output.
#pragma once

#include "retrieval/evaluate.h"

namespace rk::reference {

// With per_query.
Metrics brute_force(const EmbeddingView& queries, const EmbeddingView* gallery,
                    const std::vector<std::int64_t>& recall_at);

}  // namespace rk::reference
