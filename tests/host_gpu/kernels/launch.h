// Defines launch() of kernels/launch_on_gpu.h for the emulated GPU, in the form of
// kernels/cuda/launch.cuh: RK_LAUNCH(AddTensors<float>). Blocks run from the last to the first,
// since their order must not matter; shared memory begins as NaN.
#pragma once

#include "engine/device/cuda/error.h"
#include "kernels/launch_on_gpu.h"
#include "kernels/run_block.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/cuda/stream.h"
#include "tests/host_gpu/kernels/blocks.h"

#include <memory>
#include <typeinfo>

namespace rk {

template <class Kernel> void launch(const Kernel& kernel, CudaStream stream) {
  host_gpu::put(stream, typeid(Kernel).name(), [kernel, blocks = kernel.blocks()] {
    host_gpu::with_block([&]<class Block>() {
      struct Memory {
        BlockMemory of_team;
        typename SharedMemoryOf<Kernel, Block::kThreads>::Type of_kernel;
      };
      const auto memory = std::make_unique_for_overwrite<Memory>();
      for (int index = blocks - 1; index >= 0; --index) {
        host_gpu::fill_with_nan(memory.get(), sizeof(Memory));
        Block::run(index, blocks, &memory->of_team,
                   [&](const Block& block) { run_on_block(kernel, block, memory->of_kernel); });
      }
    });
  });
  check_cuda(cudaGetLastError(), "kernel");  // also what an earlier call left
}

#define RK_LAUNCH(...) template void launch(const __VA_ARGS__&, CudaStream)

}  // namespace rk
