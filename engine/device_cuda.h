// What the CUDA runtime says of this machine's GPUs; see probe_gpus() in engine/dispatch.h.
#pragma once

#include "engine/device.h"

namespace rk {

GpuReport probe_cuda();

}  // namespace rk
