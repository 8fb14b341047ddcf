// How far a loss on a GPU may lie from the exact one, derived from what it computes in float. Unit
// roundoff u = 2^-24, rows of unit length in D dimensions.
//
// Similarities. A sum of D products is off by at most D u, in any order, fused or not, and as the
// roundings do not know of one another by no more than sqrt(D) u in the mean (Higham, Mary: A New
// Approach to Probabilistic Rounding Error Analysis, 2019). The factors below leave it twice to
// four times that where a loss hangs on a single pair; where it is a mean over many it is less.
//
// Terms. A loss adds up functions of one similarity or of the difference of two, times a steepness
// k: sigmoid(k (s_j - s_p)), exp(k s), a share of a bin 1/k wide. Neither a sigmoid nor an
// exponential changes by more than its own value times the change of its argument, so similarities
// that are d off put such a term 2 k d off, relative to itself; a share of a bin, as much of 1. To
// that come the functions' own errors and the roundings of the sum.
//
// Loss. A quotient of two sums of terms that are all above 0, or a logarithm of one: |error| <= 2 r
// max(1, |loss|), r the relative error of a sum. Its gradient has the derivatives of the same terms
// over such sums, 4 r. Where entries of the gradient cancel, or a pair lies at a hinge, it is more,
// by as much as on the CPU: DeviceLossCase adds what is seen there.
#pragma once

#include "losses/registry.h"
#include "tests/losses/reference.h"

#include <cmath>
#include <cstdint>

namespace rk {

inline constexpr double kUnitRoundoff = 0x1p-24;

// Relative errors of exp_negative(x), reciprocal() (kernels/math.h) and of the library's functions.
struct FloatFunctions {
  double exponential = 0, exponential_per_x = 0;
  double reciprocal = 0;
  double library = 0;  // exp, log1p, expm1, sqrt
};

// Of the host, also as a GPU: polynomials, as far off as kernels/math.h says and its test shows.
inline constexpr FloatFunctions kHostFunctions{2.5e-7, 0, 3e-7, 2 * kUnitRoundoff};

// A card has other operations for these: ex2.approx and rcp.approx, 2^-22 off (PTX ISA), behind x
// log2(e), where the constant and the product are rounded; CUDA's own library, 2 ulp. All else is
// alike but for its order: products are cuBLAS's, in float32 without TF32, sums go over a block's
// threads, nothing is contracted (-fmad=false). Below 2^-126 its functions give 0: no term that
// counts.
inline constexpr FloatFunctions kCardFunctions{0x1p-22, 2 * kUnitRoundoff, 0x1p-22,
                                               4 * kUnitRoundoff};

struct DeviceRounding {
  double loss = 0;      // of max(1, |loss|)
  double gradient = 0;  // of its length
};

inline DeviceRounding device_rounding(const LossSpec& spec, const FloatFunctions& functions,
                                      std::int64_t dim) {
  // One after the other in a thread or a lane, then over those: a row's few hundred columns.
  constexpr double kOfSums = 40 * kUnitRoundoff;
  const reference::LossTerm term = reference::reference_of(spec).term(spec.values);
  const double similarity = std::sqrt(static_cast<double>(dim)) * kUnitRoundoff;
  const double relative =
      2 * term.steepness * similarity +
      term.exponentials * (functions.exponential + functions.exponential_per_x * term.argument) +
      term.reciprocals * functions.reciprocal + term.library * functions.library + kOfSums;
  return {2 * relative, 4 * relative};
}

}  // namespace rk
