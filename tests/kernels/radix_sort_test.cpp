#include "kernels/radix_sort.h"

#include "engine/base/random.h"
#include "kernels/descending_key.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace rk {
namespace {

template <class Key> class RadixSortOf {
 public:
  // Sorts the keys; the items are their original places.
  RadixSortOf(std::vector<Key> keys, int threads)
      : keys_{std::move(keys), {}}, counts_(static_cast<std::size_t>(radix_counts(threads))) {
    keys_[1].resize(keys_[0].size());
    for (auto& items : items_) items.resize(keys_[0].size());
    std::iota(items_[0].begin(), items_[0].end(), 0U);
    const auto view = [&](int i) { return KeyedItems<Key>{keys_[i].data(), items_[i].data()}; };
    const KeyedItems<Key> sorted = radix_sort(threads, static_cast<std::int64_t>(keys_[0].size()),
                                              view(0), view(1), counts_.data());
    result_ = sorted.keys == keys_[0].data() ? 0 : 1;
  }
  const std::vector<Key>& keys() const { return keys_[result_]; }
  const std::vector<std::uint32_t>& items() const { return items_[result_]; }

 private:
  std::vector<Key> keys_[2];
  std::vector<std::uint32_t> items_[2];
  std::vector<std::int64_t> counts_;
  std::size_t result_ = 0;
};

// `kinds`: how many different keys; few kinds give many ties and digits that are the same in all
// keys.
template <class Key>
void expect_stable_order(std::int64_t n, std::int64_t kinds, std::uint64_t seed = 3) {
  std::vector<Key> keys;
  for (std::int64_t i = 0; i < n; ++i) {
    CounterRandom random(seed, sizeof(Key), static_cast<std::uint64_t>(i));
    const auto high = static_cast<Key>(random.below(kinds));
    keys.push_back(static_cast<Key>(high * static_cast<Key>(0x9E3779B97F4A7C15ULL)));
  }
  std::vector<std::uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  for (int threads = 1; threads <= 4; ++threads) {
    const RadixSortOf<Key> sorted(keys, threads);
    EXPECT_EQ(sorted.items(), order) << n << " keys of " << kinds << " kinds on " << threads;
    EXPECT_TRUE(std::is_sorted(sorted.keys().begin(), sorted.keys().end()));
  }
}

// The ThreadSanitizer run selects its tests by this name, Parallel*.
TEST(ParallelRadixSort, IsStableOnAnyNumberOfThreads) {
  for (const std::int64_t n : {0, 1, 2, 5, 2049, 40'000}) {
    for (const std::int64_t kinds : {1, 2, 3000, 1 << 30}) {
      expect_stable_order<std::uint32_t>(n, kinds);
      expect_stable_order<std::uint64_t>(n, kinds);
    }
  }
}

TEST(ParallelRadixSort, DrawnCasesAreStable) {
  const std::uint64_t seed = random_seed();
  CounterRandom random(seed, 0, 0);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::int64_t n = random.below(random.below(2) == 0 ? 20 : 5000);
    const std::int64_t kinds = 1 + random.below(std::int64_t{1} << random.below(31));
    SCOPED_TRACE(testing::Message() << "case " << i);
    expect_stable_order<std::uint32_t>(n, kinds, seed + i);
    expect_stable_order<std::uint64_t>(n, kinds, seed + i);
  }
}

TEST(DescendingKey, OrdersNumbersFromTheLargestDown) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> falling = {kInfinity, 3e38F,   2.0F,  1.0F,   1e-40F,
                                      0.0F,      -1e-40F, -1.0F, -3e38F, -kInfinity};
  for (std::size_t i = 1; i < falling.size(); ++i) {
    EXPECT_LT(descending_key(falling[i - 1]), descending_key(falling[i])) << falling[i];
    EXPECT_LT(descending_key(static_cast<double>(falling[i - 1])),
              descending_key(static_cast<double>(falling[i])))
        << falling[i];
  }
  EXPECT_EQ(descending_key(0.0F), descending_key(-0.0F));
}

}  // namespace
}  // namespace rk
