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

#include "losses/auc/auc.h"
#include "losses/registry.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

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

struct LossTerm {
  double steepness = 0;  // k
  int exponentials = 0, reciprocals = 0, library = 0;
  // The longest argument of an exponential that counts: behind e^-20 a whole row adds up to less
  // than a rounding of the sums, which are at least 1.
  double argument = 20;
};

inline LossTerm loss_term(const LossSpec& spec) {
  const auto value = [&](const char* name) { return spec.values.number(name); };
  const auto sigmoid = [](double k, int library = 0) { return LossTerm{k, 1, 1, library}; };
  // A pair's distance sqrt(2 - 2s) and its slope change by 1/d^2 of themselves; nearer than 0.2 no
  // pair of the made-up batches lies unless it is one point, where the slope is 0.
  const auto triplet = [&] {
    const int soft =
        spec.values.integer("soft");  // an exponential, and a reciprocal in its logarithm
    return LossTerm{spec.values.integer("squared") == 1 ? 2.0 : 25.0, soft, soft, 3};
  };
  // A rank is a step for each score that it counts. On the whole as many scores lie within d as a
  // sigmoid of this steepness sees: a row's few hundred spread over its range.
  const LossTerm ranks{50, 0, 0, 3};
  const std::map<std::string, std::function<LossTerm()>> terms = {
      {"smooth_ap", [&] { return sigmoid(1 / value("tau")); }},
      // Behind delta, where the sigmoid has come to 1, a line of slope rho.
      {"sup_ap", [&] { return sigmoid(std::max(1 / value("tau"), value("rho"))); }},
      // A second sigmoid over ranks: those up to 16 count, each off by their own share.
      {"recall_at_k", [&] { return sigmoid((1 + 16 / value("tau_k")) / value("tau"), 2); }},
      // The penalties f of n: n f'(n) / f(n) is at most 2, for pnp_dq at most alpha.
      {"pnp_o", [&] { return sigmoid(1 / value("tau")); }},
      {"pnp_iu", [&] { return sigmoid(2 / value("tau"), 2); }},
      {"pnp_ib", [&] { return sigmoid(2 / value("tau"), 2); }},
      {"pnp_ds", [&] { return sigmoid(1 / value("tau"), 1); }},
      {"pnp_dq", [&] { return sigmoid((1 + value("alpha")) / value("tau"), 2); }},
      {"wilcoxon_bh", [&] { return sigmoid(value("r")); }},
      {"auc_bh", [&] { return sigmoid(auc_steepness(value("ds"))); }},
      // Its sigmoids are made of products of two exponentials, exp(42.5) at most each.
      {"auc_ba",
       [&] {
         return LossTerm{auc_steepness(value("ds")), 2, 1, 0, 42.5};
       }},
      {"fastap", [&] { return LossTerm{value("bins") / 2}; }},
      {"histogram", [&] { return LossTerm{value("bins") / 2}; }},
      {"contrastive", [] { return LossTerm{1}; }},
      {"triplet_bh", triplet},
      {"triplet_ba", triplet},
      {"multi_similarity",
       [&] {
         return LossTerm{std::max(value("alpha"), value("beta")), 1, 0, 2};
       }},
      {"nsl",
       [&] {
         return LossTerm{value("scale"), 1, 0, 2};
       }},
      {"proxy_anchor",
       [&] {
         return LossTerm{value("alpha"), 1, 0, 2};
       }},
      {"rambo_recall", [&] { return ranks; }},
      {"rambo_ap", [&] { return ranks; }},
      // Of scores as they are given, their ranks are exact.
      {"rambo_map", [] { return LossTerm{}; }},
      {"rambo_apc", [] { return LossTerm{}; }},
      {"rambo_map_apc", [] { return LossTerm{}; }},
  };
  return terms.at(spec.entry->name)();
}

struct DeviceRounding {
  double loss = 0;      // of max(1, |loss|)
  double gradient = 0;  // of its length
};

inline DeviceRounding device_rounding(const LossSpec& spec, const FloatFunctions& functions,
                                      std::int64_t dim) {
  // One after the other in a thread or a lane, then over those: a row's few hundred columns.
  constexpr double kOfSums = 40 * kUnitRoundoff;
  const LossTerm term = loss_term(spec);
  const double similarity = std::sqrt(static_cast<double>(dim)) * kUnitRoundoff;
  const double relative =
      2 * term.steepness * similarity +
      term.exponentials * (functions.exponential + functions.exponential_per_x * term.argument) +
      term.reciprocals * functions.reciprocal + term.library * functions.library + kOfSums;
  return {2 * relative, 4 * relative};
}

}  // namespace rk
