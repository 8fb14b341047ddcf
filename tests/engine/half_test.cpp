#include "engine/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

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
