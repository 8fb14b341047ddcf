// The global poolings, for the host and for device code.
#pragma once

#include <cstdint>

namespace rk {

enum class PoolKind : std::uint8_t { kAverage, kMax, kGem };

// Generalised mean, y = mean(max(x, epsilon)^p)^(1/p) (Radenovic et al. 2019).
struct Gem {
  double p = 3;
  double epsilon = 1e-6;
};

}  // namespace rk
