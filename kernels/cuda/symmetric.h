// Kernels over the square part of a loss's matrix, in device memory.
#pragma once

#include "engine/device/cuda_stream.h"

#include <cstdint>

namespace rk {

// matrix = matrix + matrix^T, of `rows` x `rows` values with row stride `stride`, in place.
void add_transpose(float* matrix, std::int64_t stride, int rows, CudaStream stream);

}  // namespace rk
