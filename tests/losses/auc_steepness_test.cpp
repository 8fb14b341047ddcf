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
