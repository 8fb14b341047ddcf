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

std::string utf8(char32_t code) {
  const auto bits = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | (code >> 6)), bits(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | (code >> 12)), bits(6), bits(0)};
  return {static_cast<char>(0xF0 | (code >> 18)), bits(12), bits(6), bits(0)};
}

TEST(Printable, EveryCharacterIsReadAndNothingElse) {
  for (char32_t code = 0; code < 0x110000; ++code) {
    const std::string text = utf8(code);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    const Character read = first_character(text + "a");
    ASSERT_EQ(read.bytes, surrogate ? 0 : text.size()) << static_cast<std::uint32_t>(code);
    ASSERT_EQ(read.code, surrogate ? 0 : code);
    if (text.size() > 1) {
      ASSERT_EQ(first_character(text.substr(0, text.size() - 1)).bytes, 0U);
    }
  }
  // Longer than needed, beyond the last, and bytes that begin nothing.
  for (const char* text : {"\xc0\xaf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                           "\xf8\x88\x80\x80\x80", "\x80", "\xff"}) {
    EXPECT_EQ(first_character(text).bytes, 0U) << one_line(text);
    EXPECT_EQ(printable_bytes(text), 0U) << one_line(text);
  }
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
