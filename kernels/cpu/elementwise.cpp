#include "kernels/cpu/elementwise.h"

#include "engine/base/parallel.h"

#include <algorithm>

namespace rk::elementwise_cpu {

void copy(int threads, std::int64_t n, const float* x, float* y, bool accumulate) {
  if (x == y && !accumulate) return;
  parallel_ranges(threads, n, [&](std::int64_t begin, std::int64_t end, int) {
    if (!accumulate) {
      std::copy(x + begin, x + end, y + begin);
      return;
    }
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) y[i] += x[i];
  });
}

void copy_runs(int threads, const Runs& runs, const float* x, float* y, bool accumulate) {
  parallel_for(threads, runs.count, [&](std::int64_t r, int) {
    const float* from = x + r * runs.x_stride;
    float* to = y + r * runs.y_stride;
    if (accumulate) {
#pragma omp simd
      for (std::int64_t i = 0; i < runs.length; ++i) to[i] += from[i];
    } else {
      std::copy_n(from, runs.length, to);
    }
  });
}

}  // namespace rk::elementwise_cpu
