#include "tests/host_gpu/rounding.h"

#include "engine/base/random.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>

namespace rk::host_gpu {
namespace {

std::optional<std::uint64_t>& seed() {
  static std::optional<std::uint64_t> of = []() -> std::optional<std::uint64_t> {
    const char* given = std::getenv("RK_ROUNDING_SEED");
    if (given == nullptr) return std::nullopt;
    return std::stoull(given);
  }();
  return of;
}

double reordered(double sum, double size, double terms) {
  if (!seed() || sum == static_cast<double>(static_cast<float>(sum))) return sum;
  CounterRandom random(*seed(), 0, std::bit_cast<std::uint64_t>(sum));
  return sum + 0x1p-24 * std::sqrt(terms) * size * random.uniform(-1, 1);
}

}  // namespace

std::optional<std::uint64_t> rounding_seed() { return seed(); }
void round_as_a_card(std::optional<std::uint64_t> another) { seed() = another; }

double as_tf32(double operand) {
  if (!seed() || !std::isfinite(operand)) return operand;
  constexpr std::uint32_t kDropped = 0x1FFF;  // the lower 13 bits of 23
  auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(operand));
  if (*seed() % 2 == 0) bits += (kDropped >> 1) + (bits >> 13 & 1);
  return static_cast<double>(std::bit_cast<float>(bits & ~kDropped));
}

double Sum::total() const {
  return reordered(total_, std::sqrt(squares_), static_cast<double>(terms_));
}

void reorder(std::span<double> sums, double terms) {
  if (!seed()) return;
  double squares = 0;
  for (const double sum : sums) squares += sum * sum;
  const double size = std::sqrt(squares / static_cast<double>(sums.size()));
  for (double& sum : sums) sum = reordered(sum, size, terms);
}

}  // namespace rk::host_gpu
