#include "losses/auc/auc_gradient.h"

#include "losses/auc/auc.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rk {
namespace {

struct Thresholds {
  explicit Thresholds(double ds)
      : step(ds), r(auc_steepness(ds)), count(static_cast<int>(std::floor(2 / ds + 1e-9)) + 1) {}
  double step;
  double r;
  int count;
};

// The definition.
double derivative(const Thresholds& t, const double* slopes, double score) {
  double sum = 0;
  for (int m = 0; m < t.count; ++m) {
    const double e = std::exp(-std::abs(t.r * (score + 1 - m * t.step)));
    sum += slopes[m] * t.r * e / ((1 + e) * (1 + e));
  }
  return sum;
}

// The largest error over scores on and beyond all thresholds, relative to r.
template <class S> double worst(const Thresholds& t) {
  std::vector<double> slopes;
  std::vector<S> given;
  for (int m = 0; m < 2 * t.count; ++m) {
    given.push_back(static_cast<S>(std::sin(m * m)));
    slopes.push_back(given.back());
  }
  AucGradientTable<S> table;
  const Context context(1);
  table.plan(context, t.r, t.step, t.count);
  table.fill(context, given.data());
  const AucGradient<S> gradient = table.gradient();
  double out = 0;
  for (int i = -3000; i <= 3000; ++i) {
    const S score = static_cast<S>(i * 0.00101);
    const auto* of_positive = slopes.data();
    const auto* of_negative = slopes.data() + t.count;
    for (const double error : {static_cast<double>(gradient(gradient.positive, score)) -
                                   derivative(t, of_positive, score),
                               static_cast<double>(gradient(gradient.negative, score)) -
                                   derivative(t, of_negative, score)}) {
      if (std::abs(error) > out || std::isnan(error)) out = std::abs(error);  // NaN stays
    }
  }
  return out / t.r;
}

// In float the error is mostly the rounding of a score's distance from its threshold, 6e-8 r, plus
// the polynomial's 2e-7 and the tail cut off at 6e-9. In double it is the polynomial's 3e-14 and a
// tail below 1e-17.
TEST(AucGradient, IsTheSumOverThresholds) {
  for (const double step : {0.005, 0.01, 0.04, 0.05, 0.2, 0.4, 1.0}) {
    const Thresholds t(step);
    EXPECT_LT(worst<float>(t), 5e-7 + 6e-8 * t.r) << step;
    EXPECT_LT(worst<double>(t), 1e-12) << step;
  }
}

TEST(AucGradient, IsZeroFarFromAllThresholds) {
  const std::vector<float> slopes(82, 1.0F);
  AucGradientTable<float> table;
  const Context context(1);
  table.plan(context, 42.2, 0.05, 41);
  table.fill(context, slopes.data());
  const AucGradient<float> gradient = table.gradient();
  for (const float score : {-1e20F, -3.0F, 3.0F, 1e20F}) {
    EXPECT_EQ(gradient(gradient.positive, score), 0) << score;
    EXPECT_EQ(gradient(gradient.negative, score), 0) << score;
  }
}

}  // namespace
}  // namespace rk
