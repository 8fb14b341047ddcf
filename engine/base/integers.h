// Integer division rounded up, rounding up to a multiple of `step`, and signed indices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rk {

template <class T> constexpr T divide_up(T value, std::type_identity_t<T> step) {
  return (value + step - 1) / step;
}

template <class T> constexpr T round_up(T value, std::type_identity_t<T> step) {
  return divide_up(value, step) * step;
}

// A position, which is signed here, as std::vector's index. i >= 0.
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace rk
