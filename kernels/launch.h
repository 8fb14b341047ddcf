// Runs a kernel that is written over a Block (kernels/block_team.h) on a GPU.
//
// A kernel is a struct of its arguments, all pointers to device memory, with
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
// launch() is asynchronous on `stream` and defined for the kernels that kernels/*_kernels.h
// list. A launch that fails is a DeviceError; a kernel of no blocks is none.
//
// Packs of kernels/element.h want every array to start on 16 bytes. None of these kernels has yet
// run on a GPU: they are compiled, and tests/host_gpu and tests/race run them block by block.
#pragma once

#include "engine/device/cuda_stream.h"

namespace rk {

template <class Kernel> void launch(const Kernel& kernel, CudaStream stream);

}  // namespace rk
