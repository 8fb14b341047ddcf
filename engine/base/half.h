// 16-bit floats as stored in memory, and their conversions on the host. To float32 they are exact;
// from float32 they round to nearest, ties to even, overflow to infinity, and turn any NaN into the
// one NaN that CUDA makes. Device code converts in kernels/half_element.h.
#pragma once

#include "engine/base/dtype.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace rk {

struct Float16 {
  std::uint16_t bits;  // sign, 5 of exponent, 10 of fraction
};

struct Bfloat16 {
  std::uint16_t bits;  // the upper half of a float32
};

template <> struct DTypeOf<Float16> { static constexpr DType value = DType::kFloat16; };
template <> struct DTypeOf<Bfloat16> { static constexpr DType value = DType::kBfloat16; };

inline float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline float from_float16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  // A denormal: its value is fraction 2^-24.
  if (exponent == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -size : size;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

inline std::uint16_t to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return 0x7FFFU;
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

inline std::uint16_t to_float16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t size = bits & 0x7FFFFFFFU;
  if (size > 0x7F800000U) return 0x7FFFU;
  std::uint32_t half = 0x7C00U;
  if (size < 0x38800000U) {
    // Below 2^-14, float16 is spaced by 2^-24, as float32 is between 0.5 and 1.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3F000000U;
  } else if (size < 0x477FF000U) {  // 65520: from here on infinity is nearest
    half = (size - 0x38000000U + 0xFFFU + (size >> 13 & 1U)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

// Converts the elements in `bytes` to float32; `type` is float32 or one of the 16-bit types.
inline std::vector<float> widened(std::span<const std::byte> bytes, DType type) {
  std::vector<float> out(bytes.size() / size_of(type));
  if (type == DType::kFloat32) {
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * sizeof(bits), sizeof(bits));
    out[i] = type == DType::kFloat16 ? from_float16(bits) : from_bfloat16(bits);
  }
  return out;
}

}  // namespace rk
