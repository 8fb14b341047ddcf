// How many elements a file says that an array has, before anything is allocated for them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace rk {

// The product of a file's dimensions, of any rank. If one is 0 the others may be so large that
// their product overflows; all others must have been checked.
inline std::int64_t element_count(std::span<const std::int64_t> dims) {
  if (std::ranges::find(dims, 0) != dims.end()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  return count;
}

}  // namespace rk
