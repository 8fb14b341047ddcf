// What a block of a GPU does with its share of a batch's rows (kernels/cuda/rows.h): rows index(),
// index() + blocks(), ... one after the other. Written over a Block (kernels/block_team.h) that
// also says which one of how many it is; `shared` is its memory of scratch.shared_bytes.
#pragma once

#include "kernels/block_team.h"
#include "kernels/cuda/rows.h"

#include <algorithm>

namespace rk {

// Whether a row has numbers for a sum over all rows.
template <class Row, class Team>
concept Measured = requires(const Team& team, const typename Row::Params& params,
                            const GalleryRow<float>& in, float* stats, void* memory) {
  Row::measure(team, params, in, stats, memory);
};

template <class Block>
RK_FN RK_INLINE void* scratch_place(const Block& block, const RowScratch& scratch,
                                    std::int64_t bytes, void* shared) {
  if (bytes <= scratch.shared_bytes) return shared;
  return scratch.global + static_cast<std::int64_t>(block.index()) * scratch.global_bytes;
}

// f(team, row) for the rows of this block.
template <class Block, class F>
RK_FN RK_INLINE void for_block_rows(const Block& block, int rows, F&& f) {
  const BlockTeamOver<Block> team(block);
  for (int row = block.index(); row < rows; row += block.blocks()) {
    f(team, row);
    team.sync();  // the next row takes the same scratch
  }
}

// Everything of a row; its scores are where its gradient goes.
RK_FN RK_INLINE GalleryRow<float> gallery_row(const RowBatch& batch, int row, float weight) {
  GalleryRow<float> in;
  in.scores = batch.scores + row * batch.stride;
  in.columns = batch.columns;
  in.classes = batch.classes;
  in.members = batch.members + batch.first_members[row];
  in.member_count = batch.member_counts[row];
  in.images = batch.images;
  in.self = row;
  in.weight = weight;
  return in;
}

template <class Row, class Block>
RK_FN RK_INLINE void measure_block_rows(const Block& block, const RowBatch& batch,
                                        const typename Row::Params* device_params, float* stats,
                                        int width, const RowScratch& scratch, void* shared) {
  const typename Row::Params params = *device_params;
  const float weight = *batch.weight;
  for_block_rows(block, batch.rows, [&](const BlockTeamOver<Block>& team, int row) {
    const GalleryRow<float> in = gallery_row(batch, row, weight);
    float* own = stats + static_cast<std::int64_t>(row) * width;
    if (batch.counted[row] == 0) {
      team.for_each(width, [&](int k) { own[k] = 0; });
      return;
    }
    const std::int64_t bytes = scratch_of<Row>(params, in.columns, in.member_count);
    Row::measure(team, params, in, own, scratch_place(block, scratch, bytes, shared));
  });
}

template <class Row, class Block>
RK_FN RK_INLINE void run_block_rows(const Block& block, const RowBatch& batch,
                                    const typename Row::Params* device_params,
                                    const RowScratch& scratch, void* shared) {
  const typename Row::Params params = *device_params;
  const float weight = *batch.weight;
  for_block_rows(block, batch.rows, [&](const BlockTeamOver<Block>& team, int row) {
    const GalleryRow<float> in = gallery_row(batch, row, weight);
    float* grad = batch.scores + row * batch.stride;
    float* loss = batch.losses + row;
    if (batch.counted[row] == 0) {
      team.for_each(pad(in.columns), [&](int k) { grad[k] = 0; });
      team.for_each(1, [&](int) { *loss = 0; });
      return;
    }
    const std::int64_t bytes = scratch_of<Row>(params, in.columns, in.member_count);
    Row::row(team, params, in, grad, loss, scratch_place(block, scratch, bytes, shared));
  });
}

template <class Block>
RK_FN RK_INLINE void softmax_block_rows(const Block& block, float scale, float* scores,
                                        std::int64_t stride, int rows, int columns,
                                        const std::int64_t* labels, float weight, float* losses,
                                        const RowScratch& scratch, void* shared) {
  void* memory = scratch_place(block, scratch, SoftmaxRow<float>::scratch(columns), shared);
  for_block_rows(block, rows, [&](const BlockTeamOver<Block>& team, int row) {
    float* own = scores + row * stride;
    SoftmaxRow<float>::row(team, scale, own, columns, static_cast<int>(labels[row]), weight, own,
                           losses + row, memory);
  });
}

template <class Block>
RK_FN RK_INLINE void proxy_anchor_block_rows(const Block& block,
                                             const ProxyAnchorRow<float>::Params& params,
                                             float* scores, std::int64_t stride, int rows,
                                             int columns, const std::int64_t* labels,
                                             const float* positive_weights, float negative_weight,
                                             float* losses, const RowScratch& scratch,
                                             void* shared) {
  void* memory = scratch_place(block, scratch, ProxyAnchorRow<float>::scratch(columns), shared);
  for_block_rows(block, rows, [&](const BlockTeamOver<Block>& team, int row) {
    float* own = scores + row * stride;
    ProxyAnchorRow<float>::row(team, params, own, columns, labels, row, positive_weights[row],
                               negative_weight, own, losses + row, memory);
  });
}

}  // namespace rk
