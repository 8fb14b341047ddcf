// Flags that take one number for all colours of a picture, or three.
#pragma once

#include "engine/base/colours.h"
#include "engine/base/error.h"
#include "engine/base/note.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <vector>

namespace rk {

// A network's values as a flag holds them.
inline std::vector<double> flag_colours(const std::array<double, kColours>& values) {
  return {values.begin(), values.end()};
}

// Makes one number the value of each colour. Throws UsageError, naming the flag, if there are
// neither one nor three.
inline void give_each_colour(std::string_view flag, std::vector<double>& values) {
  if (values.size() == 1) values.assign(kColours, values.front());
  if (values.size() != kColours) {
    fail<UsageError>("{}: give one number, or red,green,blue", flag);
  }
}

// A note on a mean that only levels of 0 to 255 can have.
inline void note_mean_of_levels(double mean) {
  if (mean <= 1) return;
  note(fmt::format("--input-mean {:g}: pixels are 0 to 1 here, not 0 to 255; {:.3g} may be meant",
                   mean, mean / 255));
}

}  // namespace rk
