#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rk {

// The first `count` of a period's values over and over: what fills large tensors in little time.
inline std::vector<float> repeated(const std::vector<float>& period, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t at = 0; at < count; at += period.size()) {
    std::copy_n(period.data(), std::min(period.size(), count - at), values.data() + at);
  }
  return values;
}

}  // namespace rk
