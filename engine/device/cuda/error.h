// CUDA's error codes as exceptions, for files that include CUDA's headers.
#pragma once

#include <cuda_runtime_api.h>

namespace rk {

// Throws DeviceError with the text of cuda_failure() (engine/driver/device.h) unless `error` is
// cudaSuccess; DeviceFault if it ends all work, which any call may be the first to report. Clears
// the runtime's last error, so that the next call does not report it again.
void check_cuda(cudaError_t error, const char* what);
// The same for calls that wait for work under way, whose failure is always a DeviceFault.
void check_work(cudaError_t error, const char* what);

}  // namespace rk
