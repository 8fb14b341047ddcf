// Words in brackets, such as the name of a folder "[album]": where a flag takes several texts, the
// library takes such a word apart at its commas. A mark before it keeps it whole.
#pragma once

#include <string>

namespace rk {

constexpr char kWholeWord = '\x01';

inline std::string marked_whole(const std::string& word) {
  return word.starts_with('[') ? kWholeWord + word : word;
}

inline void drop_mark(std::string& word) {
  if (word.starts_with(kWholeWord)) word.erase(0, 1);
}

}  // namespace rk
