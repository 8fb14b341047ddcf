// Random programs (program_cases.h).
#include "layers/onednn/convolution_block.h"
#include "tests/layers/program_cases.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(Programs, LinearLayersAreTheirDefinition) {
  const Context context(2);
  for (const std::uint64_t seed : random_seeds(100)) {
    check_linear_layers(context, seed);
  }
}

TEST(Programs, JoinedChannelsAreTheirDefinition) {
  const Context context(2);
  for (const std::uint64_t seed : random_seeds(100)) {
    for (const std::int64_t block : {std::int64_t{0}, convolution_block()}) {
      check_joined_channels(context, Precision::kFp32, block, seed);
    }
  }
}

}  // namespace
}  // namespace rk
