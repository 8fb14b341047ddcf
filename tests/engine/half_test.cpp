#include "engine/base/half.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace rk {
namespace {

TEST(Half, Float16FromItsBits) {
  EXPECT_EQ(from_float16(0x3C00), 1.0F);
  EXPECT_EQ(from_float16(0xC500), -5.0F);
  EXPECT_EQ(from_float16(0x7BFF), 65504.0F);   // the largest
  EXPECT_EQ(from_float16(0x0400), 0x1p-14F);   // the smallest normal one
  EXPECT_EQ(from_float16(0x8001), -0x1p-24F);  // the smallest of all
  EXPECT_EQ(from_float16(0xFC00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(from_float16(0x7E00)));
}

// Every 16-bit number must come back as itself, and every NaN as 0x7FFF.
template <class From, class To> void expect_round_trip(From from, To to) {
  for (std::uint32_t bits = 0; bits <= 0xFFFFU; ++bits) {
    const float x = from(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(to(x), std::isnan(x) ? 0x7FFFU : bits);
  }
}

TEST(Half, NarrowingUndoesWidening) {
  expect_round_trip(from_float16, to_float16);
  expect_round_trip(from_bfloat16, to_bfloat16);
}

// By definition: the nearest multiple of the step at that size, ties to even.
float nearest_multiple(double x, int digits, int least_exponent, double largest) {
  int exponent = 0;
  std::frexp(x, &exponent);
  const int step = std::max(exponent - digits, least_exponent);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
  return std::abs(rounded) > largest ? static_cast<float>(std::copysign(INFINITY, x))
                                     : static_cast<float>(rounded);
}

TEST(Half, RoundsAsItsDefinition) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(random_seed()));
  const auto expect_nearest = [](float x) {
    ASSERT_EQ(from_float16(to_float16(x)), nearest_multiple(x, 11, -24, 65504)) << x;
    ASSERT_EQ(from_bfloat16(to_bfloat16(x)), nearest_multiple(x, 8, -133, 0x1.FEp127)) << x;
  };
  for (const float edge :
       {65504.0F, 65519.0F, 65520.0F, -1e9F, 1.0F + 0x1p-11F, 1.0F + 0x1p-8F, 1.0F + 3 * 0x1p-8F,
        0x1p-25F, 0x1.8p-25F, 0x1p-14F, 0x1.FFEp-15F, 3e38F}) {
    expect_nearest(edge);
  }
  for (int i = 0; i < 200000; ++i) {
    // All magnitudes alike; every other number is halfway between two float16 numbers or next to
    // that.
    auto bits = static_cast<std::uint32_t>(random());
    if (i % 2 == 0) bits = (bits & 0xFFFFE000U) + 0x1000U + static_cast<std::uint32_t>(i % 3) - 1;
    const auto x = std::bit_cast<float>(bits);
    if (std::isfinite(x)) expect_nearest(x);
  }
}

TEST(Half, WidensEveryType) {
  const std::uint16_t halves[] = {0x3C00, 0xC500}, bfloats[] = {0x3F80, 0xC0A0};
  const float floats[] = {1.0F, -5.0F};
  const std::vector<float> expected = {1.0F, -5.0F};
  EXPECT_EQ(widened(std::as_bytes(std::span(halves)), DType::kFloat16), expected);
  EXPECT_EQ(widened(std::as_bytes(std::span(bfloats)), DType::kBfloat16), expected);
  EXPECT_EQ(widened(std::as_bytes(std::span(floats)), DType::kFloat32), expected);
}

}  // namespace
}  // namespace rk
