#include "losses/auc/auc.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(AucSteepness, SolvesEquation10) {
  // Minima of eq. 10 found independently (tests/golden/losses/README.md), given to five digits.
  EXPECT_NEAR(auc_steepness_solved(0.2), 12.017, 1e-3);
  EXPECT_NEAR(auc_steepness_solved(0.1), 22.462, 1e-3);
  EXPECT_NEAR(auc_steepness_solved(0.05), 42.142, 1e-3);
  EXPECT_NEAR(auc_steepness_solved(0.02), 97.271, 2e-3);
  EXPECT_NEAR(auc_steepness_solved(0.01), 183.538, 5e-3);
  // Zeros of the integral's derivative in r, by another rule of 20 points, given to ten digits. The
  // loss changes by up to three times as much as r, and float32 goldens allow it 2e-7.
  constexpr double kMinima[][2] = {{0.04, 51.64045061}, {0.08, 27.49471861}, {0.125, 18.35727073},
                                   {0.25, 9.833317880}, {0.4, 6.453762155},  {1, 2.830109658}};
  for (const auto& [ds, r] : kMinima) {
    EXPECT_NEAR(auc_steepness_solved(ds) / r, 1, 1e-9) << "ds=" << ds;
  }
}

TEST(AucSteepness, ThePapersTableCounts) {
  EXPECT_EQ(auc_steepness(0.01), 201.0);
  EXPECT_EQ(auc_steepness(0.02), 101.0);
  EXPECT_EQ(auc_steepness(0.05), 42.2);
  EXPECT_EQ(auc_steepness(0.1), 22.47);
  EXPECT_EQ(auc_steepness(0.2), 12.02);
  EXPECT_EQ(auc_steepness(0.04), auc_steepness_solved(0.04));
}

}  // namespace
}  // namespace rk
