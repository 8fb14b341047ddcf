#include "engine/base/error.h"

#include "engine/base/printable.h"

#include <gtest/gtest.h>

#include <string>

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
  EXPECT_EQ(static_cast<int>(DeviceFault("").exit_code()), 5);
}

TEST(Expect, ThrowsOnlyWhereTheConditionFails) {
  expect(true, "[op] expected {}", 1);
  EXPECT_THROW(expect(false, "[op] expected {}, got {}", 1, 2), std::invalid_argument);
}

TEST(Printable, EndsWithAWholeCharacter) {
  const std::string letters(199, 'a');
  EXPECT_EQ(printable(letters + "bc"), letters + "b");
  EXPECT_EQ(printable(letters + "\u00e9"), letters);  // two bytes, of which one would fit
  EXPECT_EQ(printable("\u00e9\n"), "\u00e9\\n");
  EXPECT_EQ(printable(""), "");
}

}  // namespace
}  // namespace rk
