// CUDA's error codes as exceptions, for the files that see CUDA's headers.
#pragma once

#include <cuda_runtime_api.h>

namespace rk {

// DeviceError with cuda_failure()'s words (engine/driver/device.h) unless `error` is cudaSuccess.
// The runtime's own copy of the error is taken away, so that the next call does not report it
// again.
void check_cuda(cudaError_t error, const char* what);

}  // namespace rk
