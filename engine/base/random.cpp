#include "engine/base/random.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"

#include <cmath>
#include <numbers>

namespace rk {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

CounterRandom::CounterRandom(std::uint64_t seed, std::uint32_t stream, std::uint64_t index)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, stream, static_cast<std::uint32_t>(index),
               static_cast<std::uint32_t>(index >> 32)} {}

std::uint32_t CounterRandom::next() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[at(used_++)];
}

double CounterRandom::uniform() {
  const std::uint64_t high = next();
  const std::uint64_t low = next();
  return static_cast<double>(((high << 32) | low) >> 11) * 0x1p-53;
}

double CounterRandom::uniform(double low, double high) { return low + (high - low) * uniform(); }

std::int64_t CounterRandom::below(std::int64_t n) {
  expect(n >= 1, "[random] expected a range of at least 1, got {}", n);
  const auto range = static_cast<std::uint64_t>(n);
  // Rejection: the 2^64 mod n lowest values would make small results more likely.
  const std::uint64_t reject_below = (0 - range) % range;
  for (;;) {
    const std::uint64_t high = next();
    const std::uint64_t bits = (high << 32) | next();
    if (bits >= reject_below) return static_cast<std::int64_t>(bits % range);
  }
}

double CounterRandom::normal() {
  has_spare_ = !has_spare_;
  if (!has_spare_) return spare_;
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

}  // namespace rk
