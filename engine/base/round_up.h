// Integer division rounded up, and rounding up to a multiple of `step`.
#pragma once

#include <type_traits>

namespace rk {

template <class T> constexpr T divide_up(T value, std::type_identity_t<T> step) {
  return (value + step - 1) / step;
}

template <class T> constexpr T round_up(T value, std::type_identity_t<T> step) {
  return divide_up(value, step) * step;
}

}  // namespace rk
