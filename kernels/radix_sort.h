// A stable sort of (key, item) pairs by unsigned keys, ascending: digits of 11 bits from the
// lowest, every thread counting and moving its own contiguous range. A digit that is the same in
// all keys costs only the counting.
#pragma once

#include <cstdint>

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

}  // namespace rk
