// The kernels behind kernels/cuda/rows.h. Each .cu that includes this instantiates some of them, so
// that they compile in parallel: RK_INSTANTIATE_GALLERY_ROWS(SmoothApRow).
#pragma once

#include "engine/device/cuda/error.h"
#include "kernels/cuda/block_rows.h"
#include "kernels/cuda/cuda_block.cuh"
#include "kernels/rows/batch_numbers.h"

#include <algorithm>
#include <cstdint>

namespace rk {

// 3 blocks a multiprocessor leave 80 registers a thread; with 4 blocks, 64 registers, three of the
// row kernels would spill.
#define RK_ROW_KERNEL __global__ void __launch_bounds__(CudaBlock::kThreads, 3)

template <class Row>
RK_ROW_KERNEL measure_kernel(const RowBatch<float> batch, const typename Row::Params* params,
                             float* stats, int width, const RowScratch scratch) {
  extern __shared__ __align__(64) unsigned char shared[];
  __shared__ BlockMemory memory;
  measure_block_rows<Row>(CudaBlock(&memory), batch, params, stats, width, scratch, shared);
}

template <class Row>
RK_ROW_KERNEL rows_kernel(const RowBatch<float> batch, const typename Row::Params* params,
                          const RowScratch scratch) {
  extern __shared__ __align__(64) unsigned char shared[];
  __shared__ BlockMemory memory;
  run_block_rows<Row>(CudaBlock(&memory), batch, params, scratch, shared);
}

template <class Row>
RK_ROW_KERNEL proxy_rows_kernel(const ProxyBatch<float> batch, const typename Row::Params params,
                                const RowScratch scratch) {
  extern __shared__ __align__(64) unsigned char shared[];
  __shared__ BlockMemory memory;
  run_block_proxy_rows<Row>(CudaBlock(&memory), batch, params, scratch, shared);
}

// Gives `kernels` shared memory of `usual` bytes if the device has that much, and each block a
// piece of global memory for rows that need more.
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
  const auto room = [&](auto kernel) {
    cudaFuncAttributes own;
    check_cuda(cudaFuncGetAttributes(&own, reinterpret_cast<const void*>(kernel)), "plan rows");
    return ask(cudaDevAttrMaxSharedMemoryPerBlockOptin) - static_cast<int>(own.sharedSizeBytes);
  };
  const int limit = std::min({room(kernels)...});
  scratch->shared_bytes = usual <= limit ? static_cast<int>(usual) : 0;
  scratch->global_bytes = largest > scratch->shared_bytes ? largest : 0;
  // Allows the maximum: the attribute belongs to the kernel, and no other plan of this kernel,
  // larger or smaller, may be refused. A launch takes only what it asks for.
  const auto allow = [&](auto kernel) {
    check_cuda(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, limit),
               "plan rows");
  };
  (allow(kernels), ...);
  constexpr int kBlocksEach = 2048 / CudaBlock::kThreads;  // a multiprocessor holds 2048 threads
  scratch->blocks = std::min(rows, ask(cudaDevAttrMultiProcessorCount) * kBlocksEach);
}

template <class Row>
void GalleryRows<Row>::plan(const Params& params, int rows, int columns, RowScratch* scratch) {
  const std::int64_t usual = scratch_of<Row>(params, columns, std::min(columns, kUsualMembers));
  const std::int64_t largest = scratch_of<Row>(params, columns, columns);
  if constexpr (MeasuredRow<Row>) {
    plan_scratch(rows, usual, largest, scratch, rows_kernel<Row>, measure_kernel<Row>);
  } else {
    plan_scratch(rows, usual, largest, scratch, rows_kernel<Row>);
  }
}

template <class Row>
void GalleryRows<Row>::measure(const RowBatch<float>& batch, const Params* params, float* stats,
                               int width, const RowScratch& scratch, CudaStream stream) {
  if constexpr (MeasuredRow<Row>) {
    const auto shared = static_cast<std::size_t>(scratch.shared_bytes);
    measure_kernel<Row>
        <<<static_cast<unsigned>(scratch.blocks), CudaBlock::kThreads, shared, stream>>>(
            batch, params, stats, width, scratch);
    check_cuda(cudaGetLastError(), "row kernel");
  }
}

template <class Row>
void GalleryRows<Row>::run(const RowBatch<float>& batch, const Params* params,
                           const RowScratch& scratch, CudaStream stream) {
  const auto shared = static_cast<std::size_t>(scratch.shared_bytes);
  rows_kernel<Row><<<static_cast<unsigned>(scratch.blocks), CudaBlock::kThreads, shared, stream>>>(
      batch, params, scratch);
  check_cuda(cudaGetLastError(), "row kernel");
}

template <class Row> void ProxyRows<Row>::plan(int rows, int columns, RowScratch* scratch) {
  const std::int64_t bytes = Row::scratch(columns);
  plan_scratch(rows, bytes, bytes, scratch, proxy_rows_kernel<Row>);
}

template <class Row>
void ProxyRows<Row>::run(const ProxyBatch<float>& batch, const Params& params,
                         const RowScratch& scratch, CudaStream stream) {
  proxy_rows_kernel<Row>
      <<<static_cast<unsigned>(scratch.blocks), CudaBlock::kThreads,
         static_cast<std::size_t>(scratch.shared_bytes), stream>>>(batch, params, scratch);
  check_cuda(cudaGetLastError(), "row kernel");
}

#define RK_INSTANTIATE_GALLERY_ROWS(Row) template struct GalleryRows<Row<float>>
#define RK_INSTANTIATE_PROXY_ROWS(Row) template struct ProxyRows<Row<float>>

}  // namespace rk
