// The definition behind kernels/launch_on_gpu.h, for the .cu files that list kernels:
// RK_LAUNCH(AddTensors<float>).
#pragma once

#include "engine/device/cuda/error.h"
#include "kernels/cuda/cuda_block.cuh"
#include "kernels/launch_on_gpu.h"
#include "kernels/run_block.h"

namespace rk {

template <class Kernel> constexpr int blocks_at_once() {
  if constexpr (requires { Kernel::kBlocksAtOnce; }) return Kernel::kBlocksAtOnce;
  return 2;
}

template <class Kernel>
__global__ void __launch_bounds__(CudaBlock::kThreads, blocks_at_once<Kernel>())
    block_kernel(const __grid_constant__ Kernel kernel) {
  __shared__ BlockMemory memory;
  __shared__ typename SharedMemoryOf<Kernel, CudaBlock::kThreads>::Type shared;
  run_on_block(kernel, CudaBlock(&memory), shared);
}

template <class Kernel> void launch(const Kernel& kernel, CudaStream stream) {
  const int blocks = kernel.blocks();
  if (blocks == 0) return;
  block_kernel<<<static_cast<unsigned>(blocks), CudaBlock::kThreads, 0, stream>>>(kernel);
  check_cuda(cudaGetLastError(), "kernel");
}

#define RK_LAUNCH(...) template void launch(const __VA_ARGS__&, CudaStream)

}  // namespace rk
