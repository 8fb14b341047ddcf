// The rates at which a GPU moves bytes, measured, from which `bench` computes its floors.
#pragma once

#include "engine/device/cuda/context.h"

namespace rk {

// The GPU's copy rate, bytes read and written per second, for arrays beyond its caches.
double gpu_copy_rate(const CudaContext& cuda);

// Bytes per second of a copy from page-locked host memory to the GPU.
double gpu_upload_rate(const CudaContext& cuda);

}  // namespace rk
