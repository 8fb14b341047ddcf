// The kernels behind kernels/rows_cuda.h. Each .cu that includes this instantiates some of them, so
// that they compile side by side: RK_GALLERY_ROWS(SmoothApRow).
#pragma once

#include "engine/cuda_error.h"
#include "kernels/block_team.cuh"
#include "kernels/rows_cuda.h"

#include <algorithm>

namespace rk {

// 3 blocks a multiprocessor leave 80 registers a thread: with the 64 of 4 blocks three rows spill.
#define RK_ROW_KERNEL __global__ void __launch_bounds__(CudaBlock::kThreads, 3)

// Whether a row has numbers for a sum over all rows.
template <class Row>
concept Measured = requires(const BlockTeam& team, const typename Row::Params& params,
                            const GalleryRow<float>& in, float* stats, void* memory) {
  Row::measure(team, params, in, stats, memory);
};

// Scratch of a row, for kernels whose need depends on their parameters and for the others.
template <class Row>
RK_BOTH std::int64_t scratch_of(const typename Row::Params& params, int columns, int members) {
  if constexpr (requires { Row::scratch(params, columns, members); }) {
    return Row::scratch(params, columns, members);
  } else {
    return Row::scratch(columns, members);
  }
}

RK_FN RK_INLINE void* scratch_place(const RowScratch& scratch, std::int64_t bytes, void* shared) {
  if (bytes <= scratch.shared_bytes) return shared;
  return scratch.global + static_cast<std::int64_t>(blockIdx.x) * scratch.global_bytes;
}

// f(team, row, params, gallery row, shared scratch) for the rows of this block.
template <class Params, class F>
RK_FN RK_INLINE void for_block_rows(const RowBatch& batch, const Params* device_params, F&& f) {
  extern __shared__ __align__(64) unsigned char shared[];
  __shared__ BlockMemory memory;
  const BlockTeam team{CudaBlock(&memory)};
  const Params params = *device_params;
  const float weight = *batch.weight;
  for (int row = static_cast<int>(blockIdx.x); row < batch.rows;
       row += static_cast<int>(gridDim.x)) {
    GalleryRow<float> in;
    in.scores = batch.scores + row * batch.stride;
    in.columns = batch.columns;
    in.classes = batch.classes;
    in.members = batch.members + batch.first_members[row];
    in.member_count = batch.member_counts[row];
    in.images = batch.images;
    in.self = row;
    in.weight = weight;
    f(team, row, params, in, static_cast<void*>(shared));
    team.sync();  // the next row takes the same scratch
  }
}

template <class Row>
RK_ROW_KERNEL measure_kernel(const RowBatch batch, const typename Row::Params* params, float* stats,
                             int width, const RowScratch scratch) {
  for_block_rows(batch, params,
                 [&](const BlockTeam& team, int row, const typename Row::Params& values,
                     const GalleryRow<float>& in, void* shared) {
                   float* own = stats + static_cast<std::int64_t>(row) * width;
                   if (batch.counted[row] == 0) {
                     team.for_each(width, [&](int k) { own[k] = 0; });
                     return;
                   }
                   const std::int64_t bytes = scratch_of<Row>(values, in.columns, in.member_count);
                   Row::measure(team, values, in, own, scratch_place(scratch, bytes, shared));
                 });
}

template <class Row>
RK_ROW_KERNEL rows_kernel(const RowBatch batch, const typename Row::Params* params,
                          const RowScratch scratch) {
  for_block_rows(batch, params,
                 [&](const BlockTeam& team, int row, const typename Row::Params& values,
                     const GalleryRow<float>& in, void* shared) {
                   float* grad = batch.scores + row * batch.stride;
                   float* loss = batch.losses + row;
                   if (batch.counted[row] == 0) {
                     team.for_each(pad(in.columns), [&](int k) { grad[k] = 0; });
                     team.for_each(1, [&](int) { *loss = 0; });
                     return;
                   }
                   const std::int64_t bytes = scratch_of<Row>(values, in.columns, in.member_count);
                   Row::row(team, values, in, grad, loss, scratch_place(scratch, bytes, shared));
                 });
}

// Gives `kernels` as much shared memory as `usual` bytes take where the device has it, and rows
// that need more a piece of global memory each.
template <class... Kernels>
void plan_scratch(int rows, std::int64_t usual, std::int64_t largest, RowScratch* scratch,
                  Kernels... kernels) {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "plan rows");
  const auto ask = [&](cudaDeviceAttr attribute) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, attribute, device), "plan rows");
    return value;
  };
  const int limit =
      ask(cudaDevAttrMaxSharedMemoryPerBlockOptin) - static_cast<int>(sizeof(BlockMemory));
  scratch->shared_bytes = usual <= limit ? static_cast<int>(usual) : 0;
  scratch->global_bytes = largest > scratch->shared_bytes ? largest : 0;
  const auto allow = [&](auto kernel) {
    check_cuda(
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, scratch->shared_bytes),
        "plan rows");
  };
  (allow(kernels), ...);
  constexpr int kBlocksEach = 2048 / CudaBlock::kThreads;  // as many threads as it holds
  scratch->blocks = std::min(rows, ask(cudaDevAttrMultiProcessorCount) * kBlocksEach);
}

template <class Row>
void GalleryRows<Row>::plan(const Params& params, int rows, int columns, RowScratch* scratch) {
  const std::int64_t usual = scratch_of<Row>(params, columns, std::min(columns, kUsualMembers));
  const std::int64_t largest = scratch_of<Row>(params, columns, columns);
  if constexpr (Measured<Row>) {
    plan_scratch(rows, usual, largest, scratch, rows_kernel<Row>, measure_kernel<Row>);
  } else {
    plan_scratch(rows, usual, largest, scratch, rows_kernel<Row>);
  }
}

template <class Row>
void GalleryRows<Row>::measure(const RowBatch& batch, const Params* params, float* stats, int width,
                               const RowScratch& scratch, CudaStream stream) {
  if constexpr (Measured<Row>) {
    const auto shared = static_cast<std::size_t>(scratch.shared_bytes);
    measure_kernel<Row>
        <<<static_cast<unsigned>(scratch.blocks), CudaBlock::kThreads, shared, stream>>>(
            batch, params, stats, width, scratch);
    check_cuda(cudaGetLastError(), "row kernel");
  } else {
    check_cuda(cudaErrorInvalidDeviceFunction, "row kernel");  // a loss without stats
  }
}

template <class Row>
void GalleryRows<Row>::run(const RowBatch& batch, const Params* params, const RowScratch& scratch,
                           CudaStream stream) {
  const auto shared = static_cast<std::size_t>(scratch.shared_bytes);
  rows_kernel<Row><<<static_cast<unsigned>(scratch.blocks), CudaBlock::kThreads, shared, stream>>>(
      batch, params, scratch);
  check_cuda(cudaGetLastError(), "row kernel");
}

#define RK_GALLERY_ROWS(Row) template struct GalleryRows<Row<float>>

}  // namespace rk
