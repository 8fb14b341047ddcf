// The global poolings, by name, for the host and for device code.
#pragma once

#include <cstdint>

namespace rk {

enum class PoolKind : std::uint8_t { kAverage, kMax, kGem };

}  // namespace rk
