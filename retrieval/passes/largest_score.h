// Whether float32 holds every score of two sets, told from their longest rows.
#pragma once

#include "engine/device/context.h"
#include "retrieval/passes/embedding_set.h"

namespace rk {

// No |score| is above it: the product of the longest row on each side. `gallery` may be nullptr.
// InputError "embeddings: ..." or "gallery: ..." where a row holds what is not finite (the row is
// named), or where inner products overflow float32.
double largest_score(const Context& context, const EmbeddingView& queries,
                     const EmbeddingView* gallery);

}  // namespace rk
