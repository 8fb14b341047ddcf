// Values of metrics as people read them: four decimal places, 0 without a sign of its own, or
// "undefined" for NaN and infinity.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace rk {

// The value, or 0 if that is what it rounds to: no "-0.0000".
inline double without_tiny(double value) { return std::abs(value) < 5e-5 ? 0.0 : value; }

inline std::string text_of_metric(double value) {
  return std::isfinite(value) ? fmt::format("{:.4f}", without_tiny(value))
                              : std::string("undefined");
}

// The same of a difference, with its sign.
inline std::string text_of_difference(double value) {
  return std::isfinite(value) ? fmt::format("{:+.4f}", without_tiny(value))
                              : std::string("undefined");
}

}  // namespace rk
