// Element-wise passes over whole tensors on the CPU, threads over contiguous parts.
#pragma once

#include <cstdint>

namespace rk::elementwise_cpu {

void relu(int threads, std::int64_t n, const float* x, float* y);
// dx = dy where x > 0 (or dx += with accumulate); the gradient at 0 is 0. dx may be dy.
void relu_backward(int threads, std::int64_t n, const float* x, const float* dy, float* dx,
                   bool accumulate);
void add(int threads, std::int64_t n, const float* a, const float* b, float* y);
// y = x, or y += x with accumulate. x == y and no accumulation does nothing.
void copy(int threads, std::int64_t n, const float* x, float* y, bool accumulate);

}  // namespace rk::elementwise_cpu
