// Values of metrics as people read them: four decimal places, or "undefined" for NaN and infinity.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace rk {

inline std::string text_of_metric(double value) {
  return std::isfinite(value) ? fmt::format("{:.4f}", value) : std::string("undefined");
}

// The same of a difference, with its sign.
inline std::string text_of_difference(double value) {
  return std::isfinite(value) ? fmt::format("{:+.4f}", value) : std::string("undefined");
}

}  // namespace rk
