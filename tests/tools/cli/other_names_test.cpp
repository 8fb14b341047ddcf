#include "tools/cli/flags/other_names.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(OtherNames, NamesOfOtherProgramsLeadToOurs) {
  const std::vector<std::string> flags = {"--lr", "--batch", "--weight-decay", "--out"};
  EXPECT_EQ(name_advice("--learning-rate", flags), "did you mean --lr?");
  EXPECT_EQ(name_advice("--batch_size", flags), "did you mean --batch?");
  EXPECT_EQ(name_advice("--wd", flags), "did you mean --weight-decay?");
  EXPECT_EQ(name_advice("--freeze-bn", {"--freeze", "--bn"}), "did you mean --bn?");
  EXPECT_EQ(name_advice("learning_rate", {"lr", "batch"}), "did you mean lr?");
  // A flag that the program does not have must not be suggested.
  EXPECT_EQ(name_advice("--learning-rate", {"--data"}), "known: --data");
  EXPECT_EQ(name_advice("--bacth", flags), "did you mean --batch?");
  EXPECT_EQ(name_advice("", flags), "known: --lr, --batch, --weight-decay, --out");
}

}  // namespace
}  // namespace rk
