// Element-wise passes over whole tensors on the CPU, threads over contiguous parts.
#pragma once

#include <cstdint>

namespace rk::elementwise_cpu {

// y = x, or y += x with accumulate. x == y and no accumulation does nothing.
void copy(int threads, std::int64_t n, const float* x, float* y, bool accumulate);

// `count` runs of `length` values each, x_stride apart in x and y_stride in y: y = x, or y += x.
struct Runs {
  std::int64_t count, length, x_stride, y_stride;
};
void copy_runs(int threads, const Runs& runs, const float* x, float* y, bool accumulate);

}  // namespace rk::elementwise_cpu
