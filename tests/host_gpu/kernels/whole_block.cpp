#include "tests/host_gpu/kernels/whole_block.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>

namespace rk::host_gpu {

std::optional<std::uint64_t> block_seed() {
  static const std::optional<std::uint64_t> seed = []() -> std::optional<std::uint64_t> {
    const char* given = std::getenv("RK_BLOCK_SEED");
    if (given == nullptr) return std::nullopt;
    if (std::string_view(given) != "drawn") return std::stoull(given);
    const std::uint64_t drawn = std::random_device()();
    std::printf("drawn with RK_BLOCK_SEED=%" PRIu64 "\n", drawn);
    return drawn;
  }();
  return seed;
}

WholeBlockState& WholeBlock::of_this_host_thread() {
  thread_local const auto state = std::make_unique<WholeBlockState>(block_seed().value_or(0));
  return *state;
}

}  // namespace rk::host_gpu
