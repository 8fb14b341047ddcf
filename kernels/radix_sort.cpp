#include "kernels/radix_sort.h"

#include "engine/base/parallel.h"

#include <algorithm>
#include <utility>

namespace rk {
namespace {

template <class Key> std::size_t digit(Key key, int shift) {
  return static_cast<std::size_t>((key >> shift) & static_cast<Key>(kRadixBuckets - 1));
}

}  // namespace

template <class Key>
KeyedItems<Key> radix_sort(int threads, std::int64_t n, KeyedItems<Key> a, KeyedItems<Key> b,
                           std::int64_t* counts) {
  for (int shift = 0; shift < static_cast<int>(8 * sizeof(Key)); shift += kRadixBits) {
    std::fill_n(counts, radix_counts(threads), std::int64_t{0});
    parallel_ranges(threads, n, [&](std::int64_t begin, std::int64_t end, int member) {
      std::int64_t* mine = counts + member * kRadixBuckets;
      for (std::int64_t i = begin; i < end; ++i) ++mine[digit(a.keys[i], shift)];
    });
    // Counts become places: buckets in order, members in order within a bucket, which keeps the
    // sort stable.
    std::int64_t place = 0;
    bool one_bucket = false;
    for (std::int64_t bucket = 0; bucket < kRadixBuckets; ++bucket) {
      const std::int64_t first = place;
      for (int member = 0; member < threads; ++member) {
        place += std::exchange(counts[member * kRadixBuckets + bucket], place);
      }
      one_bucket = one_bucket || place - first == n;
    }
    if (one_bucket) continue;
    parallel_ranges(threads, n, [&](std::int64_t begin, std::int64_t end, int member) {
      std::int64_t* mine = counts + member * kRadixBuckets;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t to = mine[digit(a.keys[i], shift)]++;
        b.keys[to] = a.keys[i];
        b.items[to] = a.items[i];
      }
    });
    std::swap(a, b);
  }
  return a;
}

template KeyedItems<std::uint32_t> radix_sort(int, std::int64_t, KeyedItems<std::uint32_t>,
                                              KeyedItems<std::uint32_t>, std::int64_t*);
template KeyedItems<std::uint64_t> radix_sort(int, std::int64_t, KeyedItems<std::uint64_t>,
                                              KeyedItems<std::uint64_t>, std::int64_t*);

}  // namespace rk
