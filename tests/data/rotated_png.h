// A picture as stored by a phone that was not held as it is built: lying, with EXIF's orientation.
#pragma once

#include "tests/data/png_chunk.h"

#include <string>
#include <string_view>

namespace rk {

// Adds a chunk eXIf after the header of `png`; orientation 6: the first row belongs on the right.
inline std::string rotated_png(std::string_view png, int orientation = 6) {
  std::string tiff("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\0\0\0\0\0\0\0\0", 26);
  tiff[18] = static_cast<char>(orientation);
  return std::string(png.substr(0, 33)) + png_chunk("eXIf", tiff) + std::string(png.substr(33));
}

}  // namespace rk
