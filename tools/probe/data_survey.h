// Examines every picture of a data set once: whether it can be read, its size, orientation and
// content hash (to find duplicates).
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
  std::string problem;                     // why it cannot be read; empty: readable
  bool system_failed = false;              // or had no memory: no fault of the picture
};

// Returns the pictures in the order of the data set; decodes every file, using all threads. Only
// for sets of files (not drawn ones). Throws Interrupted if a signal asks to stop.
std::vector<SurveyedPicture> survey(const Context& context, const Dataset& data,
                                    const std::function<void(std::int64_t done)>& progress);

}  // namespace rk
