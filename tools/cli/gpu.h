// The GPU of a command that may have one.
#pragma once

#include "engine/device/cuda/context.h"
#include "engine/driver/device.h"

#include <string>

namespace rk {

// UsageError where a --precision is asked for that the CPU has not got.
void refuse_precision_without_gpu(const Device& device, const std::string& precision);

// Bytes a second that the GPU copies, read and written, of arrays beyond its caches.
double gpu_copy_rate(const CudaContext& cuda);

// Bytes a second that a copy from page-locked memory of the host brings to the GPU.
double gpu_upload_rate(const CudaContext& cuda);

}  // namespace rk
