#include "losses/products/symmetric_product.h"

#include "engine/base/random.h"
#include "losses/products/upper_tiles.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

namespace rk {
namespace {

TEST(UpperTiles, EachIsVisitedOnceByAMemberThatThereIs) {
  CounterRandom random(random_seed(), 2, 0);
  for (std::int64_t tiles = 0; tiles < 60; ++tiles) {
    const int threads = static_cast<int>(1 + random.below(5));
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(tiles * tiles));
    std::atomic<int> strangers = 0;
    for_upper_tiles(threads, tiles, [&](std::int64_t i, std::int64_t j, int member) {
      ++visits[static_cast<std::size_t>(i * tiles + j)];
      if (member < 0 || member >= threads) ++strangers;
    });
    EXPECT_EQ(strangers, 0) << tiles << " tiles, " << threads << " threads";
    for (std::int64_t i = 0; i < tiles; ++i) {
      for (std::int64_t j = 0; j < tiles; ++j) {
        ASSERT_EQ(visits[static_cast<std::size_t>(i * tiles + j)], i <= j ? 1 : 0)
            << i << ", " << j << " of " << tiles << " tiles, " << threads << " threads";
      }
    }
  }
}

// Any size, whether it pays or not, allocated larger, on 1 to 3 threads: every product must be that
// of a plain loop in double, with the same bits on both sides of the diagonal and for any number of
// threads, and nothing may be written behind a row.
TEST(SymmetricProduct, AgreesWithPlainLoops) {
  for (const std::uint64_t seed : random_seeds(120)) {
    CounterRandom random(seed, 1, 0);
    const std::int64_t rows = SymmetricProduct::kTile + random.below(400);
    const std::int64_t dim =
        random.below(2) == 0 ? 16 * (1 + random.below(6)) : 1 + random.below(90);
    const std::int64_t stride = rows + random.below(20);
    std::vector<float> e(static_cast<std::size_t>(rows * dim));
    for (float& x : e) x = static_cast<float>(random.uniform(-1, 1));
    const std::int64_t more_rows = 192 + random.below(300);
    const std::int64_t more_dim = random.below(2) * random.below(40);
    std::vector<float> one_thread;
    for (int threads = 1; threads <= 3; ++threads) {
      const Context context(threads);
      SymmetricProduct product;
      product.allocate(context, rows + more_rows, dim + more_dim);
      std::vector<float> s(static_cast<std::size_t>(rows * stride), -7.0F);
      product.run(context, rows, dim, e.data(), s.data(), stride);
      if (threads == 1) {
        one_thread = s;
      } else {
        ASSERT_EQ(s, one_thread) << "seed " << seed << ", " << threads << " threads";
      }
    }
    const auto at = [&](std::int64_t i, std::int64_t j) {
      return one_thread[static_cast<std::size_t>(i * stride + j)];
    };
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = rows; j < stride; ++j) ASSERT_EQ(at(i, j), -7.0F) << "seed " << seed;
      for (std::int64_t j = 0; j <= i; ++j) {
        ASSERT_EQ(at(i, j), at(j, i)) << "seed " << seed << ", " << i << ", " << j;
        double exact = 0;
        double size = 0;  // a sum of `dim` products is off by at most dim roundings of it
        for (std::int64_t d = 0; d < dim; ++d) {
          const double term = static_cast<double>(e[static_cast<std::size_t>(i * dim + d)]) *
                              static_cast<double>(e[static_cast<std::size_t>(j * dim + d)]);
          exact += term;
          size += std::abs(term);
        }
        ASSERT_NEAR(at(i, j), exact, 6e-8 * static_cast<double>(dim) * size)
            << "seed " << seed << ", " << i << ", " << j;
      }
    }
  }
}

TEST(SymmetricProduct, TheSmallestThatPaysIsAllocated) {
  std::int64_t rows = 1;
  while (!SymmetricProduct::pays(rows)) ++rows;
  const Context context(1);
  SymmetricProduct product;
  product.allocate(context, rows, 3);
  const std::vector<float> e(static_cast<std::size_t>(rows * 3), 2.0F);
  std::vector<float> s(static_cast<std::size_t>(rows * rows));
  product.run(context, rows, 3, e.data(), s.data(), rows);
  EXPECT_EQ(std::ranges::count(s, 12.0F), rows * rows);
}

TEST(SymmetricProduct, RunsOnNoMoreThreadsThanItWasAllocatedFor) {
  constexpr std::int64_t kRows = 600, kDim = 20;
  const std::vector<float> e(static_cast<std::size_t>(kRows * kDim), 0.5F);
  SymmetricProduct product;
  product.allocate(Context(1), kRows, kDim);
  std::vector<float> s(static_cast<std::size_t>(kRows * kRows));
  product.run(Context(16), kRows, kDim, e.data(), s.data(), kRows);
  EXPECT_EQ(std::ranges::count(s, 5.0F), kRows * kRows);
}

// The sizes around the rule's edges: 3 tiles may overhang by 4 rows, from 514 rows on any number.
TEST(SymmetricProduct, PaysWhereTilesCoverAtMostSevenTenths) {
  for (const std::int64_t rows : {1, 64, 128, 187, 193, 241, 257, 321, 385, 449, 513}) {
    EXPECT_FALSE(SymmetricProduct::pays(rows)) << rows;
  }
  for (const std::int64_t rows : {188, 192, 242, 256, 320, 384, 512}) {
    EXPECT_TRUE(SymmetricProduct::pays(rows)) << rows;
  }
  for (std::int64_t rows = 514; rows < 5000; ++rows) {
    EXPECT_TRUE(SymmetricProduct::pays(rows)) << rows;
  }
}

}  // namespace
}  // namespace rk
