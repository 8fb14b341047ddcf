// Row kernels on a GPU: a block a row (kernels/cuda/block_team.cuh), the same row headers as on the
// CPU, in float. Rows write only their own gradient and loss; sums over rows are column_sums(), in
// fixed order. No kernel uses atomics, so a batch gives the same bits every time.
//
// All pointers are to device memory. Parameters and the weight are read there when the kernel runs,
// so that a captured step can have them computed by the kernel before it. Launches are asynchronous
// on `stream`; a launch that fails is a DeviceError.
//
// These kernels are compiled, their resources checked, and compared on a GPU (tests/cuda).
#pragma once

#include "engine/device/cuda_stream.h"
#include "kernels/rows/gallery_row.h"
#include "kernels/rows/proxy_rows.h"

#include <cstddef>
#include <cstdint>

namespace rk {

// What a batch gives all its rows (GalleryRow, kernels/rows/gallery_row.h).
struct RowBatch {
  float* scores = nullptr;  // [rows, stride], overwritten by dLoss/ds
  std::int64_t stride = 0;  // pad(columns) or more
  int rows = 0;
  int columns = 0;
  const std::int32_t* classes = nullptr;        // [columns], equal for equal labels
  const std::int32_t* members = nullptr;        // [columns], by class, ascending within
  const std::int32_t* first_members = nullptr;  // [rows], where the query's class begins in them
  const std::int32_t* member_counts = nullptr;  // [rows], and how long it is
  const std::int64_t* images = nullptr;         // [columns], or null
  const std::uint8_t* counted = nullptr;        // [rows], 0: no loss, no gradient, no stats
  const float* weight = nullptr;                // [1], dLoss/d(loss of a row)
  float* losses = nullptr;                      // [rows]
};

// Where rows keep their scratch: in shared memory, or in a piece of `global` where their class is
// too large for that. A block takes one row after the other.
struct RowScratch {
  int blocks = 0;
  int shared_bytes = 0;
  std::int64_t global_bytes = 0;  // a block; 0 where every row fits in shared memory
  std::byte* global = nullptr;    // [blocks, global_bytes], aligned to 64
};

// Classes up to this size keep to shared memory. Room for larger ones would halve the blocks that
// run side by side.
inline constexpr int kUsualMembers = 64;

template <class Row> struct GalleryRows {
  using Params = typename Row::Params;

  // Fills all of `scratch` but the pointer, for batches of up to rows x columns. Sets what the
  // kernels need to take that much shared memory: once, before a capture.
  static void plan(const Params& params, int rows, int columns, RowScratch* scratch);
  // Row::measure: stats [rows, width].
  static void measure(const RowBatch& batch, const Params* params, float* stats, int width,
                      const RowScratch& scratch, CudaStream stream);
  // Row::row: batch.scores become the gradient, batch.losses are written.
  static void run(const RowBatch& batch, const Params* params, const RowScratch& scratch,
                  CudaStream stream);
};

// The rows of the proxy losses; scores are [rows, stride] and become the gradient.
void plan_proxy_rows(int rows, int columns, RowScratch* scratch);
// An item a row, `columns` classes; labels [rows].
void softmax_rows(float scale, float* scores, std::int64_t stride, int rows, int columns,
                  const std::int64_t* labels, float weight, float* losses,
                  const RowScratch& scratch, CudaStream stream);
// A class a row, `columns` items; labels [columns]. `weights`: [rows] of the positive part, which
// is 0 for a class the batch does not have; `negative_weight` for the other.
void proxy_anchor_rows(const ProxyAnchorRow<float>::Params& params, float* scores,
                       std::int64_t stride, int rows, int columns, const std::int64_t* labels,
                       const float* positive_weights, float negative_weight, float* losses,
                       const RowScratch& scratch, CudaStream stream);

// totals[k] = the sum over rows of values[row, k], in double and in an order that depends on
// nothing but `rows`.
void column_sums(const float* values, int rows, int columns, double* totals, CudaStream stream);

}  // namespace rk
