#include "engine/base/random.h"
#include "engine/base/integers.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

// Known answers published with the generator (Random123, kat_vectors: philox4x32 10).
TEST(Philox, KnownAnswers) {
  using Counter = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRandom, IsAFunctionOfItsKey) {
  CounterRandom a(7, 3, 11), b(7, 3, 11), other_index(7, 3, 12), other_stream(7, 4, 11);
  const std::uint32_t first = a.next();
  EXPECT_EQ(first, b.next());
  EXPECT_NE(first, other_index.next());
  EXPECT_NE(first, other_stream.next());
}

TEST(CounterRandom, BelowIsUniform) {
  // 60,000 draws from 6: the standard deviation of a count is 91; five of them either way.
  CounterRandom random(1, 0, 0);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60000; ++i) ++counts[at(random.below(6))];
  for (int count : counts) EXPECT_NEAR(count, 10000, 460);
}

TEST(CounterRandom, NormalHasItsMoments) {
  CounterRandom random(2, 0, 0);
  double sum = 0, squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.016);       // 5 / sqrt(draws)
  EXPECT_NEAR(squares / kDraws, 1.0, 0.0224);  // 5 * sqrt(2 / draws)
}

}  // namespace
}  // namespace rk
