// The block that the emulated GPU runs kernels on, unless a seed asks for whole ones
// (whole_block.h): the CPU's block of one thread (kernels/host_block.h) with the GPU's team over
// it, so that the code of BlockTeam runs too.
#pragma once

#include "kernels/host_block.h"

namespace rk::host_gpu {

class SerialBlock : public HostBlock {
 public:
  using HostBlock::HostBlock;

  // Runs f(block) on the thread of block `index` of `blocks`.
  template <class F> static void run(int index, int blocks, BlockMemory* memory, F&& f) {
    f(SerialBlock(index, blocks, memory));
  }
};

}  // namespace rk::host_gpu
