// A text in small letters; what is no letter of ASCII stays.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace rk {

inline std::string in_small_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace rk
