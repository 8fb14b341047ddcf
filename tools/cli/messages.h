// Output for people: messages while a program works, and results.
//
// These functions never throw. A standard error that is closed, full or unread is no reason to lose
// work; errors on standard output are checked once, when the program ends (tools/cli/cli.h), after
// everything that can be saved is saved.
#pragma once

#include "engine/base/printable.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace rk {

inline void put(std::FILE* stream, const std::string& text) {
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

// Whether the cursor is behind a progress bar (tools/cli/progress.h), which a line must replace.
inline std::atomic<bool> behind_bar = false;
inline constexpr std::string_view kClearLine = "\r\x1b[K";

// Prints one line to standard error, in which names from files may stand as they are.
template <class... Args> void tell(fmt::format_string<Args...> format, Args&&... args) {
  const std::string line = one_line(fmt::format(format, std::forward<Args>(args)...));
  put(stderr, fmt::format("{}{}\n", behind_bar.exchange(false) ? kClearLine : "", line));
}

// Prints results to standard output.
template <class... Args> void print(fmt::format_string<Args...> format, Args&&... args) {
  put(stdout, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace rk
