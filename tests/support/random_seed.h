// The seed of tests that draw their cases anew in every run: printed, and repeated by setting
// RK_TEST_SEED to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace rk {

inline std::uint64_t random_seed() {
  const char* given = std::getenv("RK_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::stoull(given) : std::random_device{}();
  std::printf("drawn with RK_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// The seeds of so many cases. That of a case that failed, set as RK_TEST_SEED, draws it first.
inline std::vector<std::uint64_t> random_seeds(std::size_t cases) {
  std::vector<std::uint64_t> seeds(cases);
  std::iota(seeds.begin(), seeds.end(), random_seed());
  return seeds;
}

}  // namespace rk
