// The seed of tests that draw their cases anew in every run: printed, and repeated by setting
// RK_TEST_SEED to it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <ranges>
#include <string>

namespace rk {

inline std::uint64_t random_seed() {
  const char* given = std::getenv("RK_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::stoull(given) : std::random_device{}();
  std::printf("drawn with RK_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// The seeds of so many cases. That of a case that failed, set as RK_TEST_SEED, draws it first.
inline auto random_seeds(std::uint64_t cases) {
  const std::uint64_t first = random_seed();
  return std::views::iota(first, first + cases);
}

}  // namespace rk
