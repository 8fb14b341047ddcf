#include "tests/host_gpu/kernels/whole_block.h"

#include <cstdlib>
#include <memory>
#include <string>

namespace rk::host_gpu {

std::optional<std::uint64_t> block_seed() {
  static const std::optional<std::uint64_t> seed = []() -> std::optional<std::uint64_t> {
    const char* given = std::getenv("RK_BLOCK_SEED");
    if (given == nullptr) return std::nullopt;
    return std::stoull(given);
  }();
  return seed;
}

WholeBlockState& WholeBlock::of_this_host_thread() {
  thread_local const auto state = std::make_unique<WholeBlockState>(block_seed().value_or(0));
  return *state;
}

}  // namespace rk::host_gpu
