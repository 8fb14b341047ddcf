// Lines for people: what is said while a program works, and what it found.
//
// Neither ever throws. Standard error may be closed, full or read by nobody, and that is no reason
// to lose work; whether standard output took everything is asked once, when the program ends
// (tools/cli/cli.h), after all that can be saved is saved.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace rk {

inline void put(std::FILE* stream, const std::string& text) {
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

// One line on standard error.
template <class... Args> void tell(fmt::format_string<Args...> format, Args&&... args) {
  put(stderr, fmt::format(format, std::forward<Args>(args)...) + "\n");
}

// Results, on standard output.
template <class... Args> void print(fmt::format_string<Args...> format, Args&&... args) {
  put(stdout, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace rk
