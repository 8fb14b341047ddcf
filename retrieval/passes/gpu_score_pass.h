// ScorePass on a GPU: all of S = Q G^T by products in float32, a tile of up to 2048 queries and
// 8192 candidates at a time (64 MiB), whose scores kernels/blocks/score_block.h counts. Embeddings
// are on the GPU in class order; all products have the same shape (edges are padded with zero
// rows), so that equal pairs of rows get equal bits. What the GPU holds besides is in
// device_score_bytes().
#pragma once

#include "engine/device/context.h"
#include "retrieval/passes/score_pass.h"

#include <cstdint>

namespace rk {

ScoreTileShape device_tile_shape(std::int64_t queries, std::int64_t gallery);

// The GPU's memory in bytes that a pass over `rows` embeddings among themselves takes at most, if a
// group of queries has at most `positives` positives and the scores of `ordered` are held in order.
std::int64_t device_score_bytes(std::int64_t rows, std::int64_t dim, std::int64_t positives,
                                std::int64_t ordered);

// On the GPU of `context`. `context`, `order` and the rows must outlive the pass. gallery ==
// nullptr: the queries are searched among themselves.
std::unique_ptr<ScorePass> make_gpu_score_pass(const Context& context, const ClassOrder& order,
                                               const EmbeddingView& queries,
                                               const EmbeddingView* gallery);

}  // namespace rk
