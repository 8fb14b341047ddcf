#include "losses/auc/auc.h"

#include "engine/base/error.h"

#include <algorithm>
#include <cmath>

namespace rk {
namespace {

// Eq. 10 at r, by Simpson's rule: the integrand is a sum of bells of width 1/r.
double roughness(double ds, double r) {
  const int thresholds = auc_thresholds(ds);
  // r ds is about 2 at the minimum, so each piece spans 0.13 of a bell's width.
  const int pieces = 2 * static_cast<int>(std::ceil(2 / ds * 8));
  const double width = 2.0 / pieces;
  const double reach = 40 / r;  // beyond it a sigmoid's curvature is below 1e-17 of its largest
  double total = 0;
  for (int i = 0; i <= pieces; ++i) {
    const double x = -1 + i * width;
    const int first = std::max(0, static_cast<int>(std::floor((x - reach + 1) / ds)));
    const int last = std::min(thresholds - 1, static_cast<int>(std::ceil((x + reach + 1) / ds)));
    double curvature = 0;
    for (int m = first; m <= last; ++m) {
      const double sigmoid = 1 / (1 + std::exp(-r * (x - (-1 + m * ds))));
      curvature += r * r * sigmoid * (1 - sigmoid) * (1 - 2 * sigmoid);
    }
    const double weight = i == 0 || i == pieces ? 1 : i % 2 == 1 ? 4 : 2;
    total += weight * curvature * curvature;
  }
  return total * width / 3;
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
  // r ds = 2: the first one found when searching downwards.
  constexpr double kStep = 0.1;
  double high = 4;
  while (high > 0.5 && roughness(ds, (high - kStep) / ds) < roughness(ds, high / ds)) high -= kStep;
  double low = (high - kStep) / ds;
  high = (high + kStep) / ds;
  constexpr double kGolden = 0.6180339887498949;
  double a = high - kGolden * (high - low);
  double b = low + kGolden * (high - low);
  double at_a = roughness(ds, a);
  double at_b = roughness(ds, b);
  while (high - low > 1e-6 * high) {
    if (at_a < at_b) {
      high = b;
      b = a;
      at_b = at_a;
      a = high - kGolden * (high - low);
      at_a = roughness(ds, a);
    } else {
      low = a;
      a = b;
      at_a = at_b;
      b = low + kGolden * (high - low);
      at_b = roughness(ds, b);
    }
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
