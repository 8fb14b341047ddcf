// Element-wise passes over whole tensors on the CPU, threads over contiguous parts.
#pragma once

#include <cstdint>

namespace rk::elementwise_cpu {

// y = x, or y += x with accumulate. x == y and no accumulation does nothing.
void copy(int threads, std::int64_t n, const float* x, float* y, bool accumulate);

}  // namespace rk::elementwise_cpu
