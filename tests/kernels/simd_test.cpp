// Vectors of several lanes compute in each lane what Lanes<1> does, for NaN and infinities too.
#include "kernels/simd.h"
#include "engine/base/integers.h"

#include "engine/base/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rk {
namespace {

template <class T, int N> using Values = std::array<T, static_cast<std::size_t>(N)>;

template <int N> struct Draw {
  explicit Draw(CounterRandom& random) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    constexpr std::array kSpecial = {0.0F, -0.0F, kInfinity, -kInfinity, kNan, 1e-40F};
    for (std::size_t l = 0; l < a.size(); ++l) {
      for (auto* values : {&a, &b, &c}) {
        const auto pick = static_cast<std::size_t>(random.below(12));
        (*values)[l] =
            pick < kSpecial.size() ? kSpecial[pick] : static_cast<float>(random.normal());
      }
      if (random.below(4) == 0) b[l] = a[l];
    }
  }
  Values<float, N> a, b, c;
};

// The same number, or both NaN; 0 and -0 are told apart.
bool same(float x, float y) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return x == y && std::signbit(x) == std::signbit(y);
}

// Compares f(lanes, a, b, c), a vector, with what one lane gives.
template <int N, class F> void expect_same(const Draw<N>& in, const char* what, F&& f) {
  using L = Lanes<N>;
  Values<float, N> got;
  L::store(got.data(), f(L{}, L::load(in.a.data()), L::load(in.b.data()), L::load(in.c.data())));
  for (std::size_t l = 0; l < got.size(); ++l) {
    const float one = f(Lanes<1>{}, in.a[l], in.b[l], in.c[l]);
    EXPECT_TRUE(same(got[l], one)) << what << " of " << in.a[l] << ", " << in.b[l] << ", "
                                   << in.c[l] << ": " << got[l] << ", one lane: " << one;
  }
}

template <int N> void compare(CounterRandom& random) {
  const Draw<N> in(random);
  expect_same<N>(in, "fma",
                 []<int M>(Lanes<M>, auto a, auto b, auto c) { return Lanes<M>::fma(a, b, c); });
  expect_same<N>(in, "max",
                 []<int M>(Lanes<M>, auto a, auto b, auto) { return Lanes<M>::max(a, b); });
  expect_same<N>(in, "keep of positive", []<int M>(Lanes<M>, auto a, auto b, auto) {
    return Lanes<M>::keep(Lanes<M>::positive(a), b);
  });
  expect_same<N>(in, "select of greater", []<int M>(Lanes<M>, auto a, auto b, auto c) {
    return Lanes<M>::select(Lanes<M>::greater(a, b), c, a);
  });

  Values<std::uint8_t, N> bytes, stored;
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.below(256));
  Values<float, N> numbers;
  std::ranges::copy(bytes, numbers.begin());
  using L = Lanes<N>;
  L::store_bytes(stored.data(), L::load(numbers.data()));
  const std::uint8_t wanted = bytes[at(random.below(N))];
  Values<float, N> equal;
  L::store(equal.data(), L::keep(L::equal(bytes.data(), wanted), L::all(1)));
  for (std::size_t l = 0; l < equal.size(); ++l) {
    EXPECT_EQ(stored[l], bytes[l]);
    EXPECT_EQ(equal[l], bytes[l] == wanted ? 1 : 0);
  }
}

TEST(Simd, EveryLaneIsOneLane) {
  CounterRandom random(random_seed(), 0, 0);
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    compare<1>(random);
    with_lanes(8, [&]<int N>(Lanes<N>) { compare<N>(random); });
    with_lanes(16, [&]<int N>(Lanes<N>) { compare<N>(random); });
  }
}

TEST(Simd, TheMaximumWithZeroKeepsNan) {
  with_lanes(16, []<int N>(Lanes<N>) {
    using L = Lanes<N>;
    Values<float, N> relu;
    L::store(relu.data(), L::max(L::all(std::nanf("")), L::all(0)));
    for (const float value : relu) EXPECT_TRUE(std::isnan(value));
  });
}

}  // namespace
}  // namespace rk
