// The floor of `bench eval` on a GPU.
#pragma once

#include "engine/device/cuda/context.h"

#include <cstdint>

namespace rk {

// Milliseconds of only the products of an evaluation (retrieval/passes/gpu_score_pass.h).
double device_products_ms(const CudaContext& cuda, std::int64_t queries, std::int64_t gallery,
                          std::int64_t dim);

}  // namespace rk
