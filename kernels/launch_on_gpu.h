// The GPU's half of kernels/launch.h, asynchronous on `stream`: defined by kernels/cuda/launch.cuh
// for the kernels that *_kernels.h list here.
#pragma once

#include "engine/device/cuda_stream.h"

namespace rk {

template <class Kernel> void launch(const Kernel& kernel, CudaStream stream);

}  // namespace rk
