// The bins that scores of pairs are counted in: 51,200 fine bins over [-1, 1], which nest in the
// 200 of the JSD (Oi et al. 2021): bin = floor((s + 1) * 100) in double. Scores outside go to the
// outermost bins.
#pragma once

#include "kernels/team.h"

#include <cmath>
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

// The same bin for |s| <= 2, computed in float32, in half the time on a CPU. The first fma may
// round up to a whole number, never down across one; the sign of the second, `left`, tells when it
// did, except for remainders so small that adding 1 in double (fine_bin) would round them away.
RK_FN RK_INLINE std::int32_t fine_bin_fused(float s) {
  constexpr float kHalf = kFineBins / 2.0F;
  constexpr float kRoundedAway = kHalf * -0x1p-54F;
  const float bin = std::floor(std::fma(s, kHalf, kHalf));
  const float left = std::fma(s, kHalf, kHalf - bin);
  const std::int32_t at = static_cast<std::int32_t>(bin) - (left < kRoundedAway ? 1 : 0);
  const std::int32_t above = at < 0 ? 0 : at;
  return above < kFineBins - 1 ? above : kFineBins - 1;
}

}  // namespace rk
