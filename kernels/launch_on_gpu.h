// The GPU's half of kernels/launch.h, asynchronous on `stream`: defined by kernels/cuda/launch.cuh
// for the kernels that kernels/cuda/*_kernels.h list.
#pragma once

#include "engine/device/cuda_stream.h"

#include <type_traits>

namespace rk {

// Whether kernels over S are compiled for a GPU. Double, in which losses are checked, runs on the
// CPU only.
template <class S> inline constexpr bool kRunsOnGpu = std::is_same_v<S, float>;

template <class Kernel> void launch(const Kernel& kernel, CudaStream stream);

}  // namespace rk
