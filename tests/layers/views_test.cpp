// Slices, reshapes and joins of random programs (view_cases.h), and what they refuse.
#include "engine/tape/layout.h"
#include "layers/reshape.h"
#include "layers/slice.h"
#include "tests/layers/view_cases.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(Views, SlicesOfFeaturesAreTheirDefinition) {
  const Context context(2);
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    testing::check_slices_of_features(context, Precision::kFp32, seed);
  }
}

TEST(Views, ShuffledChannelsAreTheirDefinition) {
  const Context context(2);
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    for (const std::int64_t block : {std::int64_t{0}, convolution_block()}) {
      testing::check_shuffled_channels(context, Precision::kFp32, block, seed);
    }
  }
}

TEST(Views, QueryKeyAndValueLieInOneResult) {
  const Context context(1);
  testing::check_query_key_value(context);
}

TEST(Views, RangesAndShapesThatDoNotFitAreRefused) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {});
  const TensorId x = program.input("x", {2, 6});
  EXPECT_THROW(slice(program, x, -1, 2, "slice"), std::invalid_argument);
  EXPECT_THROW(slice(program, x, 0, 0, "slice"), std::invalid_argument);
  EXPECT_THROW(slice(program, x, 4, 3, "slice"), std::invalid_argument);
  EXPECT_THROW(slice(program, program.input("row", {6}), 0, 3, "slice"), std::invalid_argument);
  EXPECT_THROW(reshape(program, x, {2, 5}, "reshape"), std::invalid_argument);
}

}  // namespace
}  // namespace rk
