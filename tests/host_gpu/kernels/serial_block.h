// The CPU's block of one thread (kernels/host_block.h) with the GPU's team over it: what the GPU
// made of the host runs kernels on, so that the code of BlockTeamOver runs too.
#pragma once

#include "kernels/host_block.h"

namespace rk::host_gpu {

class SerialBlock : public HostBlock {
 public:
  using HostBlock::HostBlock;
};

}  // namespace rk::host_gpu
