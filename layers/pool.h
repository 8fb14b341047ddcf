// Pooling layers.
//
// max_pool, average_pool: (N, H, W, C) -> (N, OH, OW, C). ceil_mode rounds the output size up, but
//   no window starts in the trailing padding. In a maximum, padding is minus infinity and ties go
//   to the first in scan order; an average counts padding as zeros, but leaves out the part of a
//   ceil_mode window that lies beyond the padding.
// global_pool: (N, H, W, C) -> (N, C): average, maximum, or generalised mean (GeM, Radenovic et al.
//   2019): mean(max(x, eps)^p)^(1/p), p fixed.
#pragma once

#include "engine/tape/program.h"
#include "kernels/blocks/pool_kind.h"

#include <array>
#include <cstdint>
#include <string>

namespace rk {

struct PoolOptions {
  std::array<std::int64_t, 2> kernel{3, 3};
  std::array<std::int64_t, 2> stride{2, 2};
  std::array<std::int64_t, 2> padding{1, 1};
  bool ceil_mode = false;
};

TensorId max_pool(Program& program, TensorId x, const std::string& name,
                  const PoolOptions& options);
TensorId average_pool(Program& program, TensorId x, const std::string& name,
                      const PoolOptions& options);

struct GlobalPoolOptions {
  PoolKind kind = PoolKind::kAverage;
  Gem gem;
};

// "avg", "max" or "gem".
PoolKind parse_global_pool(const std::string& name);

TensorId global_pool(Program& program, TensorId x, const std::string& name,
                     const GlobalPoolOptions& options);

}  // namespace rk
