// What errors say, for tests.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace rk {

// Returns the message of the E that `f` throws, which must be one line; "" if it throws none.
template <class E, class F> std::string message_if_any(F&& f) {
  try {
    f();
  } catch (const E& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "not one line";
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
  }
  return "";
}

// The same, but fails the test if `f` throws no E.
template <class E, class F> std::string message_of(F&& f) {
  std::string message = message_if_any<E>(f);
  EXPECT_NE(message, "") << "nothing was thrown";
  return message;
}

inline testing::AssertionResult holds(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

}  // namespace rk
