// The block that the emulated GPU runs kernels on: the CPU's block of one thread
// (kernels/host_block.h) with the GPU's team over it, so that the code of BlockTeam runs too.
#pragma once

#include "kernels/host_block.h"

namespace rk::host_gpu {

class SerialBlock : public HostBlock {
 public:
  using HostBlock::HostBlock;
};

}  // namespace rk::host_gpu
