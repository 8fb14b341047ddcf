#include "losses/auc/auc.h"

#include "engine/base/error.h"

#include <algorithm>
#include <cmath>

namespace rk {
namespace {

// Gauss and Legendre's rule of 8 points on [-1, 1]: the positive half.
struct Point {
  double at, weight;
};
constexpr Point kPoints[] = {{0.1834346424956498, 0.3626837833783620},
                             {0.5255324099163290, 0.3137066458778873},
                             {0.7966664774136267, 0.2223810344533745},
                             {0.9602898564975363, 0.1012285362903763}};

// Half the derivative in r of the square of the summed sigmoids' second derivative at x.
double slope_at(double ds, double r, int thresholds, double x) {
  const double reach = 40 / r;  // beyond it a sigmoid's curvature is below 1e-17 of its largest
  const int first = std::max(0, static_cast<int>(std::floor((x - reach + 1) / ds)));
  const int last = std::min(thresholds - 1, static_cast<int>(std::ceil((x + reach + 1) / ds)));
  double curvature = 0, in_r = 0;
  for (int m = first; m <= last; ++m) {
    const double from_threshold = x - (-1 + m * ds);
    const double s = 1 / (1 + std::exp(-r * from_threshold));
    const double bell = s * (1 - s);
    curvature += r * r * bell * (1 - 2 * s);
    in_r += 2 * r * bell * (1 - 2 * s) + r * r * from_threshold * bell * (1 - 6 * bell);
  }
  return curvature * in_r;
}

// Half the derivative of eq. 10 at r. r ds is about 2 at the minimum, so the integrand's poles (of
// sixth order) lie 1.4 steps of the thresholds off its pieces, which are half a step long: the
// rule's error is about 12^-16 of the terms, times 16^5.
double slope(double ds, double r) {
  const int thresholds = auc_thresholds(ds);
  const int pieces = 2 * (thresholds - 1);
  const double half = 1.0 / pieces;
  double total = 0;
  for (int piece = 0; piece < pieces; ++piece) {
    const double middle = -1 + (2 * piece + 1) * half;
    for (const auto& [at, weight] : kPoints) {
      total += weight * (slope_at(ds, r, thresholds, middle - at * half) +
                         slope_at(ds, r, thresholds, middle + at * half));
    }
  }
  return total * half;
}

}  // namespace

int auc_thresholds(double ds) {
  const double steps = std::round(2 / ds);
  if (std::abs(2 / ds - steps) > 1e-3) {
    const double more = std::ceil(2 / ds);
    fail<UsageError>(
        "--loss: ds={:g} makes no whole number of steps from -1 to 1, where a threshold has to "
        "lie; give {:g} "
        "or {:g}",
        ds, 2 / more, 2 / std::max(more - 1, 1.0));
  }
  return static_cast<int>(steps) + 1;
}

double auc_steepness_solved(double ds) {
  // Eq. 10 grows without bound as r grows, falls to 0 as r does, and has a local minimum near
  // r ds = 2: the first zero of its slope found when searching downwards. The slope and not the
  // value is looked at: at a minimum, a value of 16 digits places r to 6 only.
  constexpr double kStep = 0.1;
  double high = 4 / ds;
  while (high * ds > 0.5 && slope(ds, high - kStep / ds) > 0) high -= kStep / ds;
  double low = high - kStep / ds;
  while (high - low > 1e-10 * high) {
    const double middle = (low + high) / 2;
    (slope(ds, middle) > 0 ? high : low) = middle;
  }
  return (low + high) / 2;
}

double auc_steepness(double ds) {
  // Eq. 10 itself gives 183.5 and 97.3 for the first two; the paper's printed values count.
  constexpr double kTable[][2] = {
      {0.01, 201.0}, {0.02, 101.0}, {0.05, 42.2}, {0.1, 22.47}, {0.2, 12.02}};
  for (const auto& [step, r] : kTable) {
    if (std::abs(ds - step) < 1e-9) return r;
  }
  return auc_steepness_solved(ds);
}

}  // namespace rk
