// The number types in tensor files, in the order of the safetensors format, whose writer sorts
// tensors by type (descending).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rk {

enum class ElementType : std::uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBf16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

// The name in safetensors: "F32".
std::string_view name_of(ElementType type);
std::optional<ElementType> element_type(std::string_view name);

// 4 or 6 for types that are packed more than one to a byte.
int bits_of(ElementType type);

// F16, BF16, F32 and F64: the types of weights.
bool is_real(ElementType type);
// BOOL and the integers of 8 to 64 bits.
bool is_integer(ElementType type);

}  // namespace rk
