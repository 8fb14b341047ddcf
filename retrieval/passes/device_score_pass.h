// ScorePass on a GPU: all of S = Q G^T by products in float32, a tile of up to 2048 queries and
// 8192 candidates at a time (64 MiB), which kernels/blocks/score_block.h counts. Embeddings lie on
// the GPU in class order; all products have one shape, edges being padded with zero rows, so that
// equal pairs of rows get equal bits. Beside the embeddings and the tile it takes 8 bytes a
// positive and 64 a query of the group there.
#pragma once

#include "engine/device/context.h"
#include "retrieval/passes/score_pass.h"

namespace rk {

struct ScoreTileShape {
  std::int64_t rows, columns;
};
ScoreTileShape device_tile_shape(std::int64_t queries, std::int64_t gallery);

// On the GPU of `context`, which with `order` and the rows must outlive it. gallery == nullptr: the
// queries among themselves.
std::unique_ptr<ScorePass> make_device_score_pass(const Context& context, const ClassOrder& order,
                                                  const EmbeddingView& queries,
                                                  const EmbeddingView* gallery);

}  // namespace rk
