#include "engine/device/gemm.h"
#include "tests/engine/gemm_cases.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace rk {
namespace {

TEST(Gemm, MatchesThreeLoopsInDouble) {
  for (const int threads : {1, 2}) {
    const Context context(threads);
    for (const std::uint64_t seed : random_seeds(200)) check_gemm(context, seed);
  }
}

TEST(Gemm, SumsOfNothingAreZero) {
  const Context context(1);
  const float* nothing = nullptr;
  for (const bool accumulate : {false, true}) {
    std::vector<float> c = {1, 2, 3, 4, 5, 6};
    gemm(context, {.a = {nothing, 2, 0, 0},
                   .b = {nothing, 0, 2, 2},
                   .c = {c.data(), 2, 2, 3},
                   .accumulate = accumulate});
    const std::vector<float> zeros = {0, 0, 3, 0, 0, 6}, held = {1, 2, 3, 4, 5, 6};
    EXPECT_EQ(c, accumulate ? held : zeros);
  }
}

// The addresses of nothing are not looked at.
TEST(Gemm, NothingToDoIsDone) {
  const Context context(1);
  float c = 7;
  const float* nothing = nullptr;
  gemm(context, {.a = {nothing, 0, 3, 3}, .b = {nothing, 3, 5, 5}, .c = {&c, 0, 5, 5}});
  EXPECT_EQ(c, 7);
}

TEST(Gemm, RefusesMatricesThatDoNotFitTogether) {
  const Context context(1);
  float c[6] = {};
  const Factor<float> two_by_three{c, 2, 3, 3};
  EXPECT_THROW(gemm(context, {.a = two_by_three, .b = two_by_three, .c = {c, 2, 3, 3}}),
               std::invalid_argument);
  EXPECT_THROW(gemm(context, {.a = two_by_three, .b = transposed(two_by_three), .c = {c, 2, 3, 3}}),
               std::invalid_argument);
}

}  // namespace
}  // namespace rk
