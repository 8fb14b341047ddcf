// Element types of tensors and their sizes in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rk {

enum class DType : std::uint8_t { kFloat32, kFloat16, kBfloat16, kUint8 };

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::kFloat32: return 4;
    case DType::kFloat16:
    case DType::kBfloat16: return 2;
    case DType::kUint8: return 1;
  }
  return 0;
}

template <class T> struct DTypeOf;
template <> struct DTypeOf<float> { static constexpr DType value = DType::kFloat32; };
template <> struct DTypeOf<std::uint8_t> { static constexpr DType value = DType::kUint8; };
template <class T> inline constexpr DType kDTypeOf = DTypeOf<T>::value;

}  // namespace rk
