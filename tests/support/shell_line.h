// The words of a program and its arguments as a line for /bin/sh, which becomes that program.
#pragma once

#include <string>
#include <vector>

namespace rk {

// No word may hold a single quote.
inline std::string shell_line(const std::vector<std::string>& words) {
  std::string line = "exec";
  for (const std::string& word : words) line += " '" + word + "'";
  return line;
}

}  // namespace rk
