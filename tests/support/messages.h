// What errors say, for tests.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace rk {

// Returns the message of the E that `f` throws; fails the test and returns "" if it throws none.
template <class E, class F> std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "not one line";
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline testing::AssertionResult holds(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

}  // namespace rk
