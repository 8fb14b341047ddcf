#include "kernels/cpu/elementwise_cpu.h"

#include "engine/base/parallel.h"

#include <algorithm>

namespace rk::elementwise_cpu {
namespace {

// f(i) for all elements; the loop inside vectorises.
template <class F> void for_each(int threads, std::int64_t n, F&& f) {
  parallel_ranges(threads, n, [&](std::int64_t begin, std::int64_t end, int) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) f(i);
  });
}

}  // namespace

void relu(int threads, std::int64_t n, const float* x, float* y) {
  for_each(threads, n, [=](std::int64_t i) { y[i] = x[i] > 0 ? x[i] : 0.0F; });
}

void relu_backward(int threads, std::int64_t n, const float* x, const float* dy, float* dx,
                   bool accumulate) {
  if (accumulate) {
    for_each(threads, n, [=](std::int64_t i) { dx[i] += x[i] > 0 ? dy[i] : 0.0F; });
  } else {
    for_each(threads, n, [=](std::int64_t i) { dx[i] = x[i] > 0 ? dy[i] : 0.0F; });
  }
}

void add(int threads, std::int64_t n, const float* a, const float* b, float* y) {
  for_each(threads, n, [=](std::int64_t i) { y[i] = a[i] + b[i]; });
}

void copy(int threads, std::int64_t n, const float* x, float* y, bool accumulate) {
  if (accumulate) {
    for_each(threads, n, [=](std::int64_t i) { y[i] += x[i]; });
  } else if (x != y) {
    parallel_ranges(threads, n, [&](std::int64_t begin, std::int64_t end, int) {
      std::copy(x + begin, x + end, y + begin);
    });
  }
}

}  // namespace rk::elementwise_cpu
