// Helpers for commands that may use a GPU.
#pragma once

#include "engine/device/cuda/context.h"
#include "engine/driver/device.h"

#include <string>

namespace rk {

// Throws UsageError if --precision is one that the CPU does not support.
void refuse_precision_without_gpu(const Device& device, const std::string& precision);

// The GPU's copy rate, bytes read and written per second, for arrays beyond its caches.
double gpu_copy_rate(const CudaContext& cuda);

// Bytes per second of a copy from page-locked host memory to the GPU.
double gpu_upload_rate(const CudaContext& cuda);

}  // namespace rk
