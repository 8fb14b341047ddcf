// Row kernels on a GPU: one block a row (kernels/cuda/cuda_block.cuh), the same row headers as on
// the CPU, in float. Rows write only their own gradient and loss, and no kernel uses atomics, so a
// batch gives the same bits every time.
//
// All pointers are to device memory. A kernel reads parameters and the weight there when it runs,
// so that in a captured step an earlier kernel can compute them. Launches are asynchronous on
// `stream`; a launch that fails throws DeviceError.
//
// Tests check the resources that these kernels compile to, and their results on a GPU (tests/cuda).
#pragma once

#include "engine/device/cuda_stream.h"
#include "kernels/rows/proxy_batch.h"
#include "kernels/rows/row_batch.h"

#include <cstddef>
#include <cstdint>

namespace rk {

// Where rows keep their scratch: in shared memory, or, if their class is too large for that, in a
// piece of `global`. A block takes one row after the other.
struct RowScratch {
  int blocks = 0;
  int shared_bytes = 0;
  std::int64_t global_bytes = 0;  // per block; 0 if every row fits in shared memory
  std::byte* global = nullptr;    // [blocks, global_bytes], aligned to 64
};

// Classes up to this size use shared memory. Room for larger ones would halve the number of blocks
// that run side by side.
inline constexpr int kUsualMembers = 64;

template <class Row> struct GalleryRows {
  using Params = typename Row::Params;

  // Fills all of `scratch` but the pointer, for batches of up to rows x columns, and allows the
  // kernels that much shared memory. Call it once, before a capture.
  static void plan(const Params& params, int rows, int columns, RowScratch* scratch);
  // Row::measure: stats [rows, width].
  static void measure(const RowBatch<float>& batch, const Params* params, float* stats, int width,
                      const RowScratch& scratch, CudaStream stream);
  // Row::row: overwrites batch.scores with the gradient and writes batch.losses.
  static void run(const RowBatch<float>& batch, const Params* params, const RowScratch& scratch,
                  CudaStream stream);
};

// The rows of losses with proxies: SoftmaxRow and ProxyAnchorRow. rows, columns: of the matrix of
// similarities, whose rows are items and columns classes, or the other way round
// (losses/products/proxy_matrix.h).
template <class Row> struct ProxyRows {
  using Params = typename Row::Params;

  static void plan(int rows, int columns, RowScratch* scratch);
  static void run(const ProxyBatch<float>& batch, const Params& params, const RowScratch& scratch,
                  CudaStream stream);
};

}  // namespace rk
