#include "engine/base/error.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(Error, CarriesItsExitCodeAndMessage) {
  try {
    fail<InputError>("{}: {} rows; copy it again", "a.h5", 3);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kBadInput);
    EXPECT_STREQ(error.what(), "a.h5: 3 rows; copy it again");
  }
  // The numbers are a contract with scripts.
  EXPECT_EQ(static_cast<int>(UsageError("").exit_code()), 2);
  EXPECT_EQ(static_cast<int>(InputError("").exit_code()), 3);
  EXPECT_EQ(static_cast<int>(DivergedError("").exit_code()), 4);
  EXPECT_EQ(static_cast<int>(DeviceError("").exit_code()), 5);
}

TEST(Expect, ThrowsOnlyWhereTheConditionFails) {
  expect(true, "[op] expected {}", 1);
  EXPECT_THROW(expect(false, "[op] expected {}, got {}", 1, 2), std::invalid_argument);
}

}  // namespace
}  // namespace rk
