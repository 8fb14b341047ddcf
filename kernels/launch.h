// Runs a kernel that is written over a Block (kernels/block_team.h) on the device of a context.
//
// A kernel is a struct of its arguments, all pointers to that device's memory, with
//   int blocks() const                     how many blocks it takes: from the shapes alone, so that
//                                          its bits do not depend on the device
//   template <class Block> RK_FN void operator()(const Block&) const
//                                          what each thread of a block does; index() says which
//                                          block this is
// A kernel whose threads share memory names it, `template <int kThreads> struct Shared`, and takes
// it: operator()(const Block&, Shared<Block::kThreads>&). It holds anything at the start.
//
// A kernel that says so (static constexpr int kBlocksAtOnce) is compiled with so few registers that
// as many of its blocks run on a multiprocessor side by side: 4 take 64 each.
//
// On a GPU a launch is asynchronous on the context's stream, and defined for the kernels that
// kernels/cuda/*_kernels.h list; one that fails is a DeviceError. A kernel over a scalar of which
// only float is compiled for a GPU says so (static constexpr bool kOnGpu). On the CPU the blocks
// are shared among the cores, a block of one thread each (kernels/host_block.h). A kernel with zero
// blocks is not launched.
//
// Packs of kernels/element.h want every array to start on 16 bytes.
#pragma once

#include "engine/base/parallel.h"
#include "engine/device/context.h"
#include "kernels/host_block.h"
#include "kernels/launch_on_gpu.h"
#include "kernels/run_block.h"

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
