// What a file holds beside rows, one of each: labels or cameras.
#pragma once

#include <span>
#include <string>

namespace rk {

struct RowValue {
  std::string noun;                    // as messages call one of them: "label"
  std::span<const std::string> usual;  // usual names of arrays and columns of them, in lower case
};

}  // namespace rk
