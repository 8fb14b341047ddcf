#include "kernels/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rk {
namespace {

TEST(KernelMath, ExpHasTheStatedError) {
  double worst = 0;
  for (float x = 0; x >= -87; x -= 3.3e-5F) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::fmax(worst, std::abs(static_cast<double>(exp_negative(x)) - exact) / exact);
  }
  EXPECT_LT(worst, 2.5e-7);
  EXPECT_EQ(exp_negative(0.0F), 1.0F);
}

TEST(KernelMath, ExpEndsInZeroAndKeepsNan) {
  EXPECT_GT(exp_negative(-87.0F), 0.0F);
  EXPECT_EQ(exp_negative(-87.5F), 0.0F);
  EXPECT_EQ(exp_negative(-1e30F), 0.0F);
  EXPECT_EQ(exp_negative(-std::numeric_limits<float>::infinity()), 0.0F);
  EXPECT_TRUE(std::isnan(exp_negative(std::nanf(""))));
}

TEST(KernelMath, HalfSigmoidKeepsBothSidesOfTheSigmoid) {
  for (float x = -86; x <= 86; x += 0.00713F) {
    const double exact = 1 / (1 + std::exp(std::abs(static_cast<double>(x))));
    // The exponential's error and two roundings.
    EXPECT_NEAR(half_sigmoid(x), exact, 5e-7 * exact) << x;
  }
  EXPECT_NEAR(half_sigmoid(0.0F), 0.5F, 6e-8F);
  EXPECT_EQ(half_sigmoid(-std::numeric_limits<float>::infinity()), 0.0F);
  EXPECT_EQ(half_sigmoid(-std::numeric_limits<double>::infinity()), 0.0);
}

}  // namespace
}  // namespace rk
