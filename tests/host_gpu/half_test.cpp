// Our 16-bit floats against CUDA's own conversions, whose host side rounds as its device side does.
#include "engine/base/half.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace rk {
namespace {

TEST(HalfOnGpu, RoundsAsCudaDoes) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(random_seed()));
  for (int i = 0; i < 1000000; ++i) {
    auto bits = static_cast<std::uint32_t>(random());
    // Every other number is halfway between two float16 numbers, or next to that.
    if (i % 2 == 0) bits = (bits & 0xFFFFE000U) + 0x1000U + static_cast<std::uint32_t>(i % 3) - 1;
    const auto x = std::bit_cast<float>(bits);
    ASSERT_EQ(to_float16(x), std::bit_cast<std::uint16_t>(__float2half_rn(x))) << bits;
    ASSERT_EQ(to_bfloat16(x), std::bit_cast<std::uint16_t>(__float2bfloat16_rn(x))) << bits;
  }
}

TEST(HalfOnGpu, WidensAsCudaDoes) {
  for (std::uint32_t i = 0; i <= 0xFFFFU; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const auto same = [](float a, float b) {
      return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
             (a != a && b != b);
    };
    ASSERT_TRUE(same(from_float16(bits), __half2float(std::bit_cast<__half>(bits)))) << bits;
    ASSERT_TRUE(same(from_bfloat16(bits), __bfloat162float(std::bit_cast<__nv_bfloat16>(bits))))
        << bits;
  }
}

}  // namespace
}  // namespace rk
