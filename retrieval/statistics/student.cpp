#include "retrieval/statistics/student.h"

#include "engine/base/error.h"

#include <cmath>
#include <numbers>

namespace rk {
namespace {

// The x within [low, high] at which the rising function has the value.
template <typename Function>
double where(double low, double high, double value, const Function& rising) {
  for (int halvings = 0; halvings < 100; ++halvings) {
    const double middle = 0.5 * (low + high);
    (rising(middle) < value ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

// The share between -t and t, where t = sqrt(freedom) * tan(angle): Abramowitz and Stegun, Handbook
// of Mathematical Functions, 26.7.3 for odd and 26.7.4 for even degrees of freedom.
double student_share(double angle, std::int64_t freedom) {
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1.0;
  double sum = freedom > 1 ? term : 0.0;
  for (std::int64_t k = odd ? 3 : 2; k < freedom; k += 2) {
    term *= cosine * cosine * static_cast<double>(k - 1) / static_cast<double>(k);
    sum += term;
  }
  return odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

}  // namespace

double normal_share(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normal_quantile(double confidence) {
  expect(confidence >= 0 && confidence < 1,
         "[normal_quantile] expected 0 <= confidence < 1, got {}", confidence);
  return where(0.0, 40.0, confidence, [](double x) { return std::erf(x / std::numbers::sqrt2); });
}

double student_quantile(double confidence, std::int64_t freedom) {
  expect(
      confidence >= 0 && confidence < 1 && freedom >= 1,
      "[student_quantile] expected 0 <= confidence < 1 and a freedom of at least 1, got {} and {}",
      confidence, freedom);
  const auto n = static_cast<double>(freedom);
  // Many degrees of freedom: the expansion around the normal distribution, ibid. 26.7.5.
  constexpr std::int64_t kMany = 200;
  if (freedom > kMany) {
    const double x = normal_quantile(confidence), x2 = x * x;
    return x + x * (x2 + 1) / (4 * n) + x * ((5 * x2 + 16) * x2 + 3) / (96 * n * n) +
           x * (((3 * x2 + 19) * x2 + 17) * x2 - 15) / (384 * n * n * n);
  }
  const double angle = where(0.0, std::numbers::pi / 2, confidence,
                             [&](double a) { return student_share(a, freedom); });
  return std::sqrt(n) * std::tan(angle);
}

}  // namespace rk
