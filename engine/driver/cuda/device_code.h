// Whether this program has GPU code for a device.
#pragma once

#include <cuda_runtime_api.h>

namespace rk {

// Loads a minimal kernel on the current device, which starts CUDA there. Returns
// cudaErrorNoKernelImageForDevice if no GPU code was compiled for the device.
cudaError_t load_device_code();

}  // namespace rk
