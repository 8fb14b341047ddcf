// How much to do of a test that could run for hours: a little among the other tests, all of it in
// `make test-kills` and `make test-faults`.
#pragma once

#include <cstdlib>

namespace rk {

// Returns the number in the environment variable, or `otherwise` if the variable is not set.
inline int amount(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? static_cast<int>(std::strtol(text, nullptr, 10)) : otherwise;
}

}  // namespace rk
