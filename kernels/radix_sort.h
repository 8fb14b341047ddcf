// A stable sort of (key, item) pairs by unsigned keys, ascending: digits of 11 bits from the
// lowest, every thread counting and moving its own contiguous range. A digit that is the same in
// all keys costs only the counting.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace rk {

template <class Key> struct KeyedItems {
  Key* keys = nullptr;
  std::uint32_t* items = nullptr;
};

inline constexpr int kRadixBits = 11;
inline constexpr std::int64_t kRadixBuckets = std::int64_t{1} << kRadixBits;

// Elements that `counts` of radix_sort must have.
constexpr std::int64_t radix_counts(int threads) { return threads * kRadixBuckets; }

// Sorts `a`, using `b` of the same size as scratch; returns whichever holds the result.
template <class Key>
KeyedItems<Key> radix_sort(int threads, std::int64_t n, KeyedItems<Key> a, KeyedItems<Key> b,
                           std::int64_t* counts);

// An unsigned key; ascending keys order numbers from the largest down. 0 and -0 have the same key.
template <class S> auto descending_key(S value) {
  using Key = std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>;
  constexpr Key kSign = Key{1} << (8 * sizeof(S) - 1);
  const Key bits = std::bit_cast<Key>(value + S(0));
  return static_cast<Key>((bits & kSign) != 0 ? bits : ~bits & ~kSign);
}

}  // namespace rk
