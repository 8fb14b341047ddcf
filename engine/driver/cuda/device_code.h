// Whether this program has GPU code for a device.
#pragma once

#include <cuda_runtime_api.h>

namespace rk {

// Loads the smallest kernel there is on the current device, starting CUDA there:
// cudaErrorNoKernelImageForDevice where nothing was compiled for it.
cudaError_t load_device_code();

}  // namespace rk
