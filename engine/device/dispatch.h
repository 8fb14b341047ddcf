// Whether this build has CUDA, for what of losses/, layers/ and training/ still has a GPU's half of
// its own.
#pragma once

#include "engine/driver/device.h"

namespace rk {

inline constexpr bool kHasCuda = RK_CUDA != 0;

}  // namespace rk
