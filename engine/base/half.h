// What a GPU computed as float32, on the host: 16-bit numbers from their bits.
#pragma once

#include "engine/base/dtype.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace rk {

inline float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline float from_float16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  // Of a denormal: fraction 2^-24.
  if (exponent == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -size : size;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

// The elements in `bytes`, whose type is float32 or one of the 16-bit ones.
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
