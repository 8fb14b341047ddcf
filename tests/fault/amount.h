// How much of a test that could go on for hours is done: a little with the others, all of it by
// `make test-kills` and `make test-faults`.
#pragma once

#include <cstdlib>

namespace rk {

// The number in that environment variable, or `otherwise`.
inline int amount(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? static_cast<int>(std::strtol(text, nullptr, 10)) : otherwise;
}

}  // namespace rk
