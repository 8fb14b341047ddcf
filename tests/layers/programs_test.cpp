// Random programs (program_cases.h).
#include "layers/onednn/convolution_block.h"
#include "tests/layers/program_cases.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(Programs, LinearLayersAreTheirDefinition) {
  const Context context(2);
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    check_linear_layers(context, seed);
  }
}

TEST(Programs, JoinedChannelsAreTheirDefinition) {
  const Context context(2);
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    for (const std::int64_t block : {std::int64_t{0}, convolution_block()}) {
      check_joined_channels(context, Precision::kFp32, block, seed);
    }
  }
}

}  // namespace
}  // namespace rk
