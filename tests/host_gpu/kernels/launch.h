// Defines launch() of kernels/launch_on_gpu.h for the emulated GPU, in the form of
// kernels/cuda/launch.cuh: RK_LAUNCH(AddTensors<float>). Blocks run from the last to the first,
// since their order must not matter; shared memory begins as NaN.
#pragma once

#include "engine/device/cuda/error.h"
#include "kernels/launch_on_gpu.h"
#include "kernels/run_block.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/cuda/stream.h"
#include "tests/host_gpu/kernels/serial_block.h"

#include <typeinfo>

namespace rk {

template <class Kernel> void launch(const Kernel& kernel, CudaStream stream) {
  using host_gpu::SerialBlock;
  host_gpu::put(stream, typeid(Kernel).name(), [kernel, blocks = kernel.blocks()] {
    for (int index = blocks - 1; index >= 0; --index) {
      BlockMemory memory;
      host_gpu::fill_with_nan(&memory, sizeof(memory));
      typename SharedMemoryOf<Kernel, SerialBlock::kThreads>::Type shared;
      host_gpu::fill_with_nan(&shared, sizeof(shared));
      run_on_block(kernel, SerialBlock(index, blocks, &memory), shared);
    }
  });
  check_cuda(cudaGetLastError(), "kernel");  // also what an earlier call left
}

#define RK_LAUNCH(...) template void launch(const __VA_ARGS__&, CudaStream)

}  // namespace rk
