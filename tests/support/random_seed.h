// The seed of tests that draw their cases anew in every run: printed, and repeated by setting
// RK_TEST_SEED to it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

namespace rk {

inline std::uint64_t random_seed() {
  const char* given = std::getenv("RK_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::stoull(given) : std::random_device{}();
  std::printf("drawn with RK_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace rk
