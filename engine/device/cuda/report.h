// What the CUDA runtime says of this machine's GPUs; see probe_gpus() in engine/device/dispatch.h.
#pragma once

#include "engine/device/device.h"

namespace rk {

GpuReport probe_cuda();

}  // namespace rk
