// Runs a kernel that is written over a Block (kernels/block_team.h) on the device of a context.
//
// A kernel is a struct of its arguments, all pointers to that device's memory, with
//   int blocks() const                     its number of blocks, from the shapes alone, so that the
//                                          result's bits do not depend on the device
//   template <class Block> RK_FN void operator()(const Block&) const
//                                          what each thread of a block does; index() says which
//                                          block this is
// A kernel whose threads share memory declares it as `template <int kThreads> struct Shared` and
// takes it: operator()(const Block&, Shared<Block::kThreads>&). It starts uninitialised.
//
// A kernel may set static constexpr int kBlocksAtOnce: it is compiled with so few registers that
// this many of its blocks run on a multiprocessor side by side (4 blocks: 64 registers a thread).
//
// On a GPU a launch is asynchronous on the context's stream, and is defined for the kernels that
// kernels/cuda/*_kernels.h list; a launch that fails throws DeviceError. A kernel templated on a
// scalar sets static constexpr bool kOnGpu to false for scalars that have no GPU code. On the CPU
// the cores share the blocks, each of one thread (kernels/host_block.h). A kernel with zero blocks
// is not launched.
//
// Packs (kernels/element.h) require every array to be aligned to 16 bytes.
#pragma once

#include "engine/base/parallel.h"
#include "engine/device/context.h"
#include "kernels/host_block.h"
#include "kernels/launch_on_gpu.h"
#include "kernels/run_block.h"

#include <cstdint>

namespace rk {

template <class Kernel> consteval bool is_on_gpu() {
  if constexpr (requires { Kernel::kOnGpu; }) return Kernel::kOnGpu;
  return true;
}

template <class Kernel> void launch(const Context& context, const Kernel& kernel) {
  if constexpr (is_on_gpu<Kernel>()) {
    if (context.on_gpu()) return launch(kernel, context.stream());
  }
  const int blocks = kernel.blocks();
  parallel_for(context.threads(), blocks, [&](std::int64_t index, int) {
    BlockMemory memory;
    typename SharedMemoryOf<Kernel, HostBlock::kThreads>::Type shared;
    run_on_block(kernel, HostBlock(static_cast<int>(index), blocks, &memory), shared);
  });
}

}  // namespace rk
