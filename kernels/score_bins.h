// The bins that scores of pairs are counted in: 51,200 over [-1, 1], which nest in the 200 of the
// JSD (Oi et al. 2021): bin = floor((s + 1) * 100) in double, with what lies outside in the
// outermost ones.
#pragma once

#include "kernels/team.h"

#include <cstdint>

namespace rk {

inline constexpr int kJsdBins = 200;
inline constexpr int kFinePerJsd = 256;
inline constexpr int kFineBins = kJsdBins * kFinePerJsd;

// (s + 1) * 100 in double is the definition; times 256 is exact, so the fine bins nest.
RK_FN RK_INLINE std::int32_t fine_bin(double s) {
  const double at = (s + 1.0) * (kFineBins / 2.0 / kFinePerJsd) * kFinePerJsd;
  const double above = at < 0.0 ? 0.0 : at;
  return static_cast<std::int32_t>(above < kFineBins - 1.0 ? above : kFineBins - 1.0);
}

}  // namespace rk
