// Command lines, as lists of words.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace rk {

inline std::vector<std::string> joined(std::vector<std::string> words,
                                       const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// `words` without `flag`, if it is there, and its value.
inline std::vector<std::string> without(std::vector<std::string> words, const std::string& flag) {
  const auto found = std::find(words.begin(), words.end(), flag);
  if (found != words.end()) words.erase(found, found + 2);
  return words;
}

// In an address space of so many MiB.
inline std::vector<std::string> limited_to(int mebibytes, const std::vector<std::string>& words) {
  return joined({"/bin/sh", "-c", fmt::format(R"(ulimit -v {}; exec "$0" "$@")", mebibytes * 1024)},
                words);
}

}  // namespace rk
