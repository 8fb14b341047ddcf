// The launches of kernels/cuda/rows.cuh on the emulated GPU.
#pragma once

#include "engine/base/error.h"
#include "engine/device/cuda/error.h"
#include "kernels/cuda/block_rows.h"
#include "kernels/rows/batch_numbers.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/cuda/stream.h"
#include "tests/host_gpu/kernels/blocks.h"

#include <algorithm>
#include <cstdint>
#include <typeinfo>
#include <vector>

namespace rk {

namespace host_gpu {

// Runs f(block, shared) for every block of a grid; each block's shared memory begins as NaN. f
// holds what it needs by value.
template <class F> void run_grid(CudaStream stream, const RowScratch& scratch, const F& f) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  if (scratch.blocks < 1) fail<DeviceError>("[row kernel] a grid of {} blocks", scratch.blocks);
  put(stream, typeid(F).name(), [f, blocks = scratch.blocks, bytes = scratch.shared_bytes] {
    std::vector<Line> shared((static_cast<std::size_t>(bytes) + 63) / 64);
    for (int index = 0; index < blocks; ++index) {
      fill_with_nan(shared.data(), shared.size() * sizeof(Line));
      BlockMemory memory;
      fill_with_nan(&memory, sizeof(memory));
      with_block([&]<class Block>() {
        Block::run(index, blocks, &memory,
                   [&](const Block& block) { f(block, static_cast<void*>(shared.data())); });
      });
    }
  });
  check_cuda(cudaGetLastError(), "row kernel");
}

inline void plan_scratch(int rows, std::int64_t usual, std::int64_t largest, RowScratch* scratch) {
  constexpr int kSharedBytes = 96 << 10;
  constexpr int kBlocks = 7;  // fewer than rows, so that a block takes several
  scratch->shared_bytes = usual <= kSharedBytes ? static_cast<int>(usual) : 0;
  scratch->global_bytes = largest > scratch->shared_bytes ? largest : 0;
  scratch->blocks = std::min(rows, kBlocks);
}

}  // namespace host_gpu

template <class Row>
void GalleryRows<Row>::plan(const Params& params, int rows, int columns, RowScratch* scratch) {
  host_gpu::plan_scratch(rows, scratch_of<Row>(params, columns, std::min(columns, kUsualMembers)),
                         scratch_of<Row>(params, columns, columns), scratch);
}

template <class Row>
void GalleryRows<Row>::measure(const RowBatch<float>& batch, const Params* params, float* stats,
                               int width, const RowScratch& scratch, CudaStream stream) {
  if constexpr (MeasuredRow<Row>) {
    host_gpu::run_grid(stream, scratch, [=](const auto& block, void* shared) {
      measure_block_rows<Row>(block, batch, params, stats, width, scratch, shared);
    });
  } else {
    fail<DeviceError>("[row kernel] a loss without stats");
  }
}

template <class Row>
void GalleryRows<Row>::run(const RowBatch<float>& batch, const Params* params,
                           const RowScratch& scratch, CudaStream stream) {
  host_gpu::run_grid(stream, scratch, [=](const auto& block, void* shared) {
    run_block_rows<Row>(block, batch, params, scratch, shared);
  });
}

template <class Row> void ProxyRows<Row>::plan(int rows, int columns, RowScratch* scratch) {
  host_gpu::plan_scratch(rows, Row::scratch(columns), Row::scratch(columns), scratch);
}

template <class Row>
void ProxyRows<Row>::run(const ProxyBatch<float>& batch, const Params& params,
                         const RowScratch& scratch, CudaStream stream) {
  host_gpu::run_grid(stream, scratch, [=](const auto& block, void* shared) {
    run_block_proxy_rows<Row>(block, batch, params, scratch, shared);
  });
}

#define RK_INSTANTIATE_PROXY_ROWS(Row) template struct ProxyRows<Row<float>>
#define RK_INSTANTIATE_GALLERY_ROWS(Row) template struct GalleryRows<Row<float>>

}  // namespace rk
