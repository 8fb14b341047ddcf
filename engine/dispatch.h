// Where the CPU's and the GPU's code part. dispatch.cpp is the only file that asks whether this
// build has CUDA; files called *_cuda.cpp and *.cu take part in a build only where it has.
#pragma once

#include "engine/device.h"

namespace rk {

// Whether this program has GPU code.
bool has_cuda();

// What this machine says of its GPUs: asks the driver and loads the libraries. Never throws for
// what it finds. Without GPU code everything in it is empty.
GpuReport probe_gpus();

}  // namespace rk
