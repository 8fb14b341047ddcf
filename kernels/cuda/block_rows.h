// What a block of a GPU does with its share of a batch's rows (kernels/cuda/rows.h): rows index(),
// index() + blocks(), ... one after the other. Templated on a Block (kernels/block_team.h) that
// also has index() and blocks(); `shared` is its memory of scratch.shared_bytes.
#pragma once

#include "kernels/block_team.h"
#include "kernels/cuda/rows.h"

#include <cstdint>

namespace rk {

template <class Block>
RK_FN RK_INLINE void* scratch_place(const Block& block, const RowScratch& scratch,
                                    std::int64_t bytes, void* shared) {
  if (bytes <= scratch.shared_bytes) return shared;
  return scratch.global + static_cast<std::int64_t>(block.index()) * scratch.global_bytes;
}

// Calls f(team, row) for the rows of this block.
template <class Block, class F>
RK_FN RK_INLINE void for_block_rows(const Block& block, int rows, F&& f) {
  const auto team = team_of(block);
  for (int row = block.index(); row < rows; row += block.blocks()) {
    f(team, row);
    team.sync();  // the next row takes the same scratch
  }
}

template <class Row, class Block>
RK_FN RK_INLINE void measure_block_rows(const Block& block, const RowBatch<float>& batch,
                                        const typename Row::Params* device_params, float* stats,
                                        int width, const RowScratch& scratch, void* shared) {
  const typename Row::Params params = *device_params;
  const float weight = *batch.weight;
  for_block_rows(block, batch.rows, [&](const auto& team, int row) {
    const GalleryRow<float> in = batch.row(row, weight);
    const std::int64_t bytes = scratch_of<Row>(params, in.columns, in.member_count);
    measure_row<Row>(team, batch, params, in, stats, width,
                     scratch_place(block, scratch, bytes, shared));
  });
}

template <class Row, class Block>
RK_FN RK_INLINE void run_block_rows(const Block& block, const RowBatch<float>& batch,
                                    const typename Row::Params* device_params,
                                    const RowScratch& scratch, void* shared) {
  const typename Row::Params params = *device_params;
  const float weight = *batch.weight;
  for_block_rows(block, batch.rows, [&](const auto& team, int row) {
    const GalleryRow<float> in = batch.row(row, weight);
    const std::int64_t bytes = scratch_of<Row>(params, in.columns, in.member_count);
    run_row<Row>(team, batch, params, in, scratch_place(block, scratch, bytes, shared));
  });
}

template <class Row, class Block>
RK_FN RK_INLINE void run_block_proxy_rows(const Block& block, const ProxyBatch<float>& batch,
                                          const typename Row::Params& params,
                                          const RowScratch& scratch, void* shared) {
  void* memory = scratch_place(block, scratch, Row::scratch(batch.columns), shared);
  for_block_rows(block, batch.rows,
                 [&](const auto& team, int row) { Row::row(team, params, batch, row, memory); });
}

}  // namespace rk
