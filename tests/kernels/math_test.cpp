#include "kernels/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rk {
namespace {

// NaN counts as the worst error, and stays.
void keep_worst(double& worst, double error) {
  if (error > worst || std::isnan(error)) worst = error;
}

TEST(KernelMath, ExpHasTheStatedError) {
  double worst = 0;
  for (float x = 0; x >= -87; x -= 3.3e-5F) {
    const double exact = std::exp(static_cast<double>(x));
    keep_worst(worst, std::abs(static_cast<double>(exp_negative(x)) - exact) / exact);
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

// The Newton step leaves 1.7e-8 of the first guess's error (kernels/math.h); the last rounding adds
// 2^-24.
constexpr double kReciprocalError = 1.7e-8 + 6e-8;

double reciprocal_error(float y) {
  return std::abs(static_cast<double>(reciprocal(y)) * static_cast<double>(y) - 1);
}

TEST(KernelMath, ReciprocalHasTheStatedError) {
  // The first guess subtracts bits, so its error is the same in all octaves except for a borrow
  // from the exponent: test every mantissa of one octave on either side of 1, then fewer mantissas
  // of every octave.
  double worst = 0;
  for (std::uint32_t bits = 0x3F000000; bits < 0x40000000; ++bits) {
    keep_worst(worst, reciprocal_error(std::bit_cast<float>(bits)));
  }
  for (float y = 1e-37F; y <= 1e37F; y *= 1.00021F) keep_worst(worst, reciprocal_error(y));
  EXPECT_LT(worst, kReciprocalError);
}

TEST(KernelMath, ReciprocalAtTheEdges) {
  EXPECT_LT(reciprocal_error(1e-37F), kReciprocalError);
  EXPECT_LT(reciprocal_error(1e37F), kReciprocalError);
  for (int exponent = -122; exponent <= 122; ++exponent) {
    for (const float y :
         {std::ldexp(1.0F, exponent), std::nextafter(std::ldexp(1.0F, exponent), 0.0F),
          std::nextafter(std::ldexp(1.0F, exponent), 1e38F)}) {
      EXPECT_LT(reciprocal_error(y), kReciprocalError) << y;
    }
  }
  EXPECT_TRUE(std::isnan(reciprocal(std::nanf(""))));
  EXPECT_TRUE(std::isnan(reciprocal(-std::nanf(""))));
  EXPECT_EQ(reciprocal(3.0), 1.0 / 3.0);
  EXPECT_EQ(reciprocal(1e300), 1e-300);
}

TEST(KernelMath, ReciprocalOfOnePlusHasTheStatedError) {
  double worst = 0;
  for (float e = 0; e <= 1; e += 1.7e-6F) {
    const double exact = 1 / (1 + static_cast<double>(e));
    keep_worst(worst, std::abs(static_cast<double>(reciprocal_of_one_plus(e)) - exact) / exact);
  }
  // The Newton steps leave (1/99)^4 = 1e-8 of the quadratic's error; 1 + e and the result are
  // rounded.
  EXPECT_LT(worst, 1.3e-7);
  EXPECT_NEAR(reciprocal_of_one_plus(0.0F), 1.0F, 6e-8F);
  EXPECT_NEAR(reciprocal_of_one_plus(1.0F), 0.5F, 6e-8F);
  EXPECT_TRUE(std::isnan(reciprocal_of_one_plus(std::nanf(""))));
  EXPECT_EQ(reciprocal_of_one_plus(0.25), 1 / 1.25);
}

TEST(KernelMath, Log1pOfAFractionHasTheStatedError) {
  double worst = 0;
  const auto check = [&](float e) {
    const double exact = std::log1p(static_cast<double>(e));
    keep_worst(worst, std::abs(static_cast<double>(log1p_of_fraction(e)) - exact) / exact);
  };
  // Every 13th mantissa from 2^-11 to 1, and fewer below.
  for (std::uint32_t bits = 0x3A000000; bits <= 0x3F800000; bits += 13) {
    check(std::bit_cast<float>(bits));
  }
  for (float e = 1e-37F; e <= 1e-3F; e *= 1.0003F) check(e);
  EXPECT_LT(worst, 3e-7);
  EXPECT_EQ(log1p_of_fraction(0.0F), 0.0F);
  EXPECT_TRUE(std::isnan(log1p_of_fraction(std::nanf(""))));
  EXPECT_EQ(log1p_of_fraction(0.25), std::log1p(0.25));
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

// The series and the difference meet at 0.1.
TEST(KernelMath, ANumberMinusLog1pDoesNotCancel) {
  for (double x = 1e-8; x < 50; x *= 1.0037) {
    const auto wide = static_cast<long double>(x);
    const auto exact = static_cast<double>(wide - std::log1p(wide));
    // Below 1e-3 long double cancels, too: the first terms of the series are exact to 1e-13.
    const double expected = x < 1e-3 ? x * x * (0.5 + x * (-1.0 / 3 + x * (0.25 - x / 5))) : exact;
    ASSERT_NEAR(x_minus_log1p(x), expected, 1e-12 * expected) << x;
    ASSERT_NEAR(x_minus_log1p(static_cast<float>(x)), expected, 3e-6 * expected) << x;
  }
  EXPECT_EQ(x_minus_log1p(0.0), 0);
  EXPECT_EQ(x_minus_log1p(0.0F), 0);
}

TEST(KernelMath, Log1pOfAScaledSumTakesAnyExponent) {
  for (const double sum : {0.0, 1e-9, 0.3, 2.0, 700.0}) {
    EXPECT_DOUBLE_EQ(log1p_scaled(0.0, sum), std::log1p(sum));
    for (const double shift : {1e-3, 1.0, 30.0}) {
      const double expected = std::log1p(std::exp(shift) * sum);
      EXPECT_NEAR(log1p_scaled(shift, sum), expected, 1e-14 + 1e-14 * shift) << shift << ' ' << sum;
    }
  }
  EXPECT_DOUBLE_EQ(log1p_scaled(5000.0, 2.0), 5000 + std::log(2.0));
  EXPECT_FLOAT_EQ(log1p_scaled(200.0F, 0.5F), 200 + std::log(0.5F));
}

}  // namespace
}  // namespace rk
