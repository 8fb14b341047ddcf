// Which block a kernel runs on.
#pragma once

#include "tests/host_gpu/kernels/serial_block.h"
#include "tests/host_gpu/kernels/whole_block.h"

namespace rk::host_gpu {

// Calls f.operator()<Block>().
template <class F> void with_block(F&& f) {
  if (block_seed()) {
    f.template operator()<WholeBlock>();
  } else {
    f.template operator()<SerialBlock>();
  }
}

}  // namespace rk::host_gpu
