// Random numbers to time a GPU's work on: on zeros GPUs run faster.
#pragma once

#include "engine/cuda_context.h"
#include "engine/dtype.h"

#include <cstdint>

namespace rk::gpu {

// `count` numbers in [-1, 1) of float32 or a 16-bit type, or bytes, into device memory. Waits.
void fill_with_noise(const CudaContext& cuda, void* device, std::int64_t count, DType type,
                     std::uint32_t stream);

}  // namespace rk::gpu
