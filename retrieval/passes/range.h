// A run of rows or columns.
#pragma once

#include <cstdint>

namespace rk {

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

}  // namespace rk
