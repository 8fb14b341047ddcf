// Pooling layers.
//
// max_pool: (N, H, W, C) -> (N, OH, OW, C), padding is minus infinity, a tie goes to the first
// maximum
//   in scan order. ceil_mode rounds the output size up, but no window starts in the padding behind.
// global_pool: (N, H, W, C) -> (N, C): average, maximum, or generalised mean (GeM, Radenovic et al.
//   2019): mean(max(x, eps)^p)^(1/p), p fixed.
#pragma once

#include "engine/tape/program.h"
#include "kernels/cpu/pool_cpu.h"

#include <array>
#include <string>

namespace rk {

struct MaxPoolOptions {
  std::array<std::int64_t, 2> kernel{3, 3};
  std::array<std::int64_t, 2> stride{2, 2};
  std::array<std::int64_t, 2> padding{1, 1};
  bool ceil_mode = false;
};

TensorId max_pool(Program& program, TensorId x, const std::string& name,
                  const MaxPoolOptions& options);

struct GlobalPoolOptions {
  pool_cpu::Global kind = pool_cpu::Global::kAverage;
  pool_cpu::Gem gem;
};

// "avg", "max" or "gem".
pool_cpu::Global parse_global_pool(const std::string& name);

TensorId global_pool(Program& program, TensorId x, const std::string& name,
                     const GlobalPoolOptions& options);

}  // namespace rk
