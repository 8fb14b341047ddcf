// Output for people: messages while a program works, and results.
//
// These functions never throw. A standard error that is closed, full or unread is no reason to lose
// work; errors on standard output are checked once, when the program ends (tools/cli/cli.h), after
// everything that can be saved is saved.
#pragma once

#include "tools/cli/cli.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace rk {

inline void put(std::FILE* stream, const std::string& text) {
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

// Prints one line to standard error, in which names from files may stand as they are.
template <class... Args> void tell(fmt::format_string<Args...> format, Args&&... args) {
  put(stderr, one_line(fmt::format(format, std::forward<Args>(args)...)) + "\n");
}

// Prints results to standard output.
template <class... Args> void print(fmt::format_string<Args...> format, Args&&... args) {
  put(stdout, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace rk
