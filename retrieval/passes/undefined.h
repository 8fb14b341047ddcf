// The value of a metric over nothing: a mean over no pairs, recall where nothing can be found. It
// is written as null.
#pragma once

#include <limits>

namespace rk {

inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

}  // namespace rk
