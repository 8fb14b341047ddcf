// Every picture of a data set looked at once: can it be read, how large is it, which way up, and is
// it there twice?
#pragma once

#include "data/sources/dataset.h"
#include "engine/device/context.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rk {

struct SurveyedPicture {
  std::int64_t index = 0;  // in the data set
  int width = 0, height = 0;
  int orientation = 1;                     // data/images/exif.h
  std::array<std::uint8_t, 32> content{};  // SHA-256 of the file
  std::string problem;                     // why it cannot be read; empty: it can
};

// In the data set's order; decodes every file on all threads. For sets of files (not drawn ones).
// Throws Interrupted where a signal asks to stop.
std::vector<SurveyedPicture> survey(const Context& context, const Dataset& data,
                                    const std::function<void(std::int64_t done)>& progress);

}  // namespace rk
