// How far a loss on a GPU may lie from the exact one, derived from what it computes in float. Unit
// roundoff u = 2^-24, rows of unit length in D dimensions.
//
// Similarities. A sum of D products is off by at most D u, in any order, fused or not, and as
// roundings are independent, by no more than sqrt(D) u in the mean (Higham, Mary: A New Approach to
// Probabilistic Rounding Error Analysis, 2019). The factors below allow two to four times that for
// a loss that depends on a single pair; a mean over many pairs is off by less.
//
// Terms. A loss adds up functions of one similarity or of the difference of two, times a steepness
// k: sigmoid(k (s_j - s_p)), exp(k s), a share of a bin 1/k wide. Neither a sigmoid nor an
// exponential changes by more than its own value times the change of its argument, so an error d of
// the similarities is an error of 2 k d in such a term, relative to the term, and of 2 k d absolute
// in a share of a bin. The functions' own errors and the roundings of the sum add to that.
//
// Loss. A quotient of two sums of positive terms, or a logarithm of one: |error| <= 2 r max(1,
// |loss|), r the relative error of a sum. Its gradient has the derivatives of the same terms over
// such sums: 4 r. Where entries of the gradient cancel, or a pair lies at a hinge, the error is
// larger: DeviceLossCase adds what it measures of that.
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

// The host, also when it emulates a GPU: polynomials, with the errors that kernels/math.h states
// and its test checks.
inline constexpr FloatFunctions kHostFunctions{2.5e-7, 0, 3e-7, 2 * kUnitRoundoff};

// A real GPU has other operations for these: ex2.approx and rcp.approx, off by 2^-22 (PTX ISA), the
// former of x log2(e), where the constant and the product are rounded; CUDA's own library, off by 2
// ulp. All else differs from the CPU only in its order: products are cuBLAS's, in float32 without
// TF32, sums go over a block's threads, nothing is contracted (-fmad=false). The operations flush
// results below 2^-126 to 0: no term that counts.
inline constexpr FloatFunctions kCardFunctions{0x1p-22, 2 * kUnitRoundoff, 0x1p-22,
                                               4 * kUnitRoundoff};

struct DeviceRounding {
  double loss = 0;      // relative to max(1, |loss|)
  double gradient = 0;  // relative to the gradient's length
};

inline DeviceRounding device_rounding(const LossSpec& spec, const FloatFunctions& functions,
                                      std::int64_t dim) {
  // A row's few hundred columns are added one after the other in a thread or lane, then across
  // those.
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
