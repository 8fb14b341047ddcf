// A picture as stored by a phone that was held upright: lying, with EXIF's orientation.
#pragma once

#include <string>

namespace rk {

// Adds a chunk eXIf after the header of `png`: orientation 6, the first row belongs on the right.
inline std::string rotated_png(const std::string& png) {
  const std::string chunk(
      "\0\0\0\x1a"
      "eXIfII*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
      "\xb7\x48\x11\x29",  // the checksum
      38);
  return png.substr(0, 33) + chunk + png.substr(33);
}

}  // namespace rk
