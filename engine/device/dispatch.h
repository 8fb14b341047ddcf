// Where the CPU's and the GPU's code part: the one place that knows whether this build has CUDA.
// Files called *_cuda.cpp and *.cu take part in a build only where it has; their headers are read
// by all, and what they declare is used under `if constexpr (kHasCuda)`.
#pragma once

#include "engine/device/device.h"

namespace rk {

// Whether this program has GPU code.
inline constexpr bool kHasCuda = RK_CUDA != 0;

// What this machine says of its GPUs: asks the driver and loads the libraries. Never throws for
// what it finds. Without GPU code everything in it is empty.
GpuReport probe_gpus();

}  // namespace rk
