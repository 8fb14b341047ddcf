// A stable sort of (key, item) pairs by unsigned keys, ascending: digits of 11 bits from the
// lowest, every thread counting and moving its own contiguous range. Digits that all keys share
// cost one count.
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

// Room for the counts of radix_sort, in elements.
constexpr std::int64_t radix_counts(int threads) { return threads * kRadixBuckets; }

// Sorts `a`, with `b` as room of the same size; returns the one that holds the result.
template <class Key>
KeyedItems<Key> radix_sort(int threads, std::int64_t n, KeyedItems<Key> a, KeyedItems<Key> b,
                           std::int64_t* counts);

// The unsigned integers that order numbers from the largest down; 0 and -0 are the same.
template <class S> auto descending_key(S value) {
  using Key = std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>;
  constexpr Key kSign = Key{1} << (8 * sizeof(S) - 1);
  const Key bits = std::bit_cast<Key>(value + S(0));
  return static_cast<Key>((bits & kSign) != 0 ? bits : ~bits & ~kSign);
}

}  // namespace rk
