// exp, log1p and sigmoid for row kernels, without calls into libm: loops over them vectorise.
//   exp_negative(x), x <= 0 (also valid up to 87): relative error below 2.5e-7 in float down to
//     x = -87; 0 below that, where the result would be denormal. On a GPU the relative error is
//     below 2.5e-7 + |x| 1e-7. Double uses std::exp.
//   reciprocal(y), y from 1e-37 to 1e37: relative error below 3e-7 in float. Double divides.
//   log1p_of_fraction(e), e from 0 to 1: relative error below 3e-7 in float, on a GPU below 6e-7.
//     Double uses std::log1p.
//   x_minus_log1p(x), x >= 0: without cancellation near 0. Not for inner loops.
//   log1p_scaled(shift, sum), both >= 0: log(1 + exp(shift) sum), where exp(shift) may overflow.
//     Not for inner loops.
//   half_sigmoid(x): the small side u = e/(1+e), e = exp(-|x|), in [0, 0.5]. Both sigmoid and
//     derivative follow from it without cancellation on either side:
//       sg(x) = x < 0 ? u : 1 - u,    sg'(x) = u (1 - u)
// NaN in gives NaN out; of the CPU's float exponentials only for the NaN that x86 makes.
#pragma once

#include "kernels/team.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace rk {

RK_FN RK_INLINE double exp_negative(double x) { return std::exp(x); }
RK_FN RK_INLINE double reciprocal(double y) { return 1 / y; }

#ifdef __CUDACC__

// Uses the special function unit: relative error 2^-22, results below 2^-126 flushed to 0. Rounding
// x log2(e) adds to the error. tanh.approx is half the work, but its error of 2^-11, summed over a
// gallery, changes ranks.
RK_FN RK_INLINE float exp_negative(float x) {
  constexpr float kLog2e = 1.44269504088896341F;
  float e;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(x * kLog2e));
  return e;
}

RK_FN RK_INLINE float reciprocal(float y) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
  return r;
}

RK_FN RK_INLINE float reciprocal_of_one_plus(float e) { return reciprocal(1.0F + e); }

#else

RK_FN RK_INLINE float exp_negative(float x) {
  // x = n ln2 + r, |r| <= ln2/2. Adding 1.5 * 2^23 rounds n to an integer in the low bits of `t`.
  constexpr float kLog2e = 1.44269504088896341F;
  constexpr float kLn2High = 0.693145751953125F;  // few enough bits that n * kLn2High is exact
  constexpr float kLn2Low = 1.42860682030941723e-6F;
  constexpr float kRound = 12582912.0F;
  constexpr float kSmallest = -87.0F;
  const float clamped = x < kSmallest ? kSmallest : x;
  const float t = std::fma(clamped, kLog2e, kRound);
  const float n = t - kRound;
  float r = std::fma(n, -kLn2High, clamped);
  r = std::fma(n, -kLn2Low, r);
  float p = 1.3888889e-3F;  // Taylor to degree 6: the rest is below 1.2e-7 for |r| <= 0.3466
  p = std::fma(p, r, 8.3333333e-3F);
  p = std::fma(p, r, 4.1666667e-2F);
  p = std::fma(p, r, 1.6666667e-1F);
  p = std::fma(p, r, 0.5F);
  p = std::fma(p, r, 1.0F);
  p = std::fma(p, r, 1.0F);
  const std::int32_t exponent = std::bit_cast<std::int32_t>(t) << 23;
  const float scaled = std::bit_cast<float>(std::bit_cast<std::int32_t>(p) + exponent);
  return x < kSmallest ? 0.0F : scaled;
}

// A constant minus the bits of y is 1/y to within 5 %; a third-order step reduces the error to
// 1.3e-4, and a Newton step squares that. Division would be the bottleneck.
RK_FN RK_INLINE float reciprocal(float y) {
  const float guess = std::bit_cast<float>(0x7EF311C3 - std::bit_cast<std::int32_t>(y));
  const float t = y * guess;
  const float r = guess * std::fma(std::fma(1.0F, t, -3.0F), t, 3.0F);
  return std::fma(std::fma(-y, r, 1.0F), r, r);
}

// 1 / (1 + e) for e in [0, 1]: the quadratic of least relative error (1/99), then two Newton steps,
// each of which squares the error. The division unit would be the bottleneck of a sigmoid.
RK_FN RK_INLINE float reciprocal_of_one_plus(float e) {
  const float y = 1.0F + e;
  float r = std::fma(std::fma(32.0F / 99.0F, e, -80.0F / 99.0F), e, 98.0F / 99.0F);
  r = std::fma(std::fma(-y, r, 1.0F), r, r);
  return std::fma(std::fma(-y, r, 1.0F), r, r);
}

#endif

template <class S> RK_FN inline S x_minus_log1p(S x) {
  if (x > S(0.1)) return x - std::log1p(x);
  // x^2/2 - x^3/3 + ...: at 0.1 fifteen terms leave 1e-16 of the first.
  S total = 0;
  for (int k = 16; k >= 2; --k) total = (k % 2 == 0 ? S(1) : S(-1)) / static_cast<S>(k) + x * total;
  return x * x * total;
}

template <class S> RK_FN inline S log1p_scaled(S shift, S sum) {
  return shift > 0 ? shift + std::log(std::exp(-shift) + sum) : std::log1p(sum);
}

RK_FN RK_INLINE double reciprocal_of_one_plus(double e) { return 1 / (1 + e); }

RK_FN RK_INLINE double log1p_of_fraction(double e) { return std::log1p(e); }

// log(1 + e) = 2 atanh(t), t = e/(2 + e) <= 1/3: 2t (1 + t^2/3 + t^4/5 + ...); seven terms are 2e-8
// short.
RK_FN RK_INLINE float log1p_of_fraction(float e) {
  const float half = 0.5F * e;
  const float t = half * reciprocal_of_one_plus(half);
  const float square = t * t;
  float p = 2.0F / 13.0F;
  p = std::fma(p, square, 2.0F / 11.0F);
  p = std::fma(p, square, 2.0F / 9.0F);
  p = std::fma(p, square, 2.0F / 7.0F);
  p = std::fma(p, square, 2.0F / 5.0F);
  p = std::fma(p, square, 2.0F / 3.0F);
  p = std::fma(p, square, 2.0F);
  return p * t;
}

template <class S> RK_FN RK_INLINE S half_sigmoid(S x) {
  const S e = exp_negative(-std::abs(x));
  return e * reciprocal_of_one_plus(e);
}

}  // namespace rk
