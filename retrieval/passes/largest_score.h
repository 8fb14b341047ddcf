// Checks that float32 can hold the scores of two sets, from the lengths of their longest rows.
#pragma once

#include "engine/device/context.h"
#include "retrieval/passes/embedding_set.h"

namespace rk {

// Returns a bound on |score|: the product of the lengths of the longest row on each side, or of the
// two longest rows if `gallery` is nullptr, since no row is scored with itself. Throws InputError
// "embeddings: ..." or "gallery: ..." if a row holds a non-finite number (the message names the
// row), or if inner products may overflow float32, or are all so small that float32 loses their
// digits.
[[nodiscard]] double largest_score(const Context& context, const EmbeddingView& queries,
                                   const EmbeddingView* gallery);

// The same for any two rows, of one set or of both.
[[nodiscard]] double largest_score_of_any(const Context& context, const EmbeddingView& set,
                                          const EmbeddingView* more);

}  // namespace rk
