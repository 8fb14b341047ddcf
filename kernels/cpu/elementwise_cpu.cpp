#include "kernels/cpu/elementwise_cpu.h"

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

}  // namespace rk::elementwise_cpu
