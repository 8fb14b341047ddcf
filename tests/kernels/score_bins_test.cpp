#include "kernels/score_bins.h"

#include "engine/base/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rk {
namespace {

void expect_same(float s) { ASSERT_EQ(fine_bin_fused(s), fine_bin(static_cast<double>(s))) << s; }

// Numbers next to every edge, where rounding could matter, and random ones.
TEST(ScoreBins, InFloatAreThoseOfTheDefinition) {
  for (int edge = -3; edge <= kFineBins + 3; ++edge) {
    float below = static_cast<float>(2.0 * edge / kFineBins - 1.0), above = below;
    for (int i = 0; i < 6; ++i) {
      expect_same(below);
      expect_same(above);
      below = std::nextafter(below, -9.0F);
      above = std::nextafter(above, 9.0F);
    }
  }
  for (float s = 1e-38F; s < 2.0F; s *= 1.001F) {
    expect_same(s);
    expect_same(-s);
  }
  for (const float s : {0.0F, -0.0F, 2.0F, -2.0F, -0x1p-54F, -0x1.000002p-54F}) expect_same(s);
  CounterRandom random(random_seed(), 0, 0);
  for (int i = 0; i < 1000000; ++i) expect_same(static_cast<float>(random.uniform(-1.1, 1.1)));
}

}  // namespace
}  // namespace rk
