// Whether float32 holds the scores of two sets, told from their longest rows.
#pragma once

#include "engine/device/context.h"
#include "retrieval/passes/embedding_set.h"

namespace rk {

// No |score| is above it: the product of the longest row on each side. `gallery` may be nullptr.
// InputError "embeddings: ..." or "gallery: ..." where a row holds what is not finite (the row is
// named), or where inner products overflow float32, or are all so small that it loses their digits.
double largest_score(const Context& context, const EmbeddingView& queries,
                     const EmbeddingView* gallery);

// The same of any two rows, of one set or of both.
double largest_score_of_any(const Context& context, const EmbeddingView& set,
                            const EmbeddingView* more);

}  // namespace rk
