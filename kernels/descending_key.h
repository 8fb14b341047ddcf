// Unsigned keys of numbers: ascending keys order numbers from the largest down. 0 and -0 have the
// same key.
#pragma once

#include "kernels/team.h"

#include <bit>
#include <cstdint>
#include <type_traits>

namespace rk {

template <class S> RK_FN RK_INLINE auto descending_key(S value) {
  using Key = std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>;
  constexpr Key kSign = Key{1} << (8 * sizeof(S) - 1);
  const Key bits = std::bit_cast<Key>(value + S(0));
  return static_cast<Key>((bits & kSign) != 0 ? bits : ~bits & ~kSign);
}

}  // namespace rk
