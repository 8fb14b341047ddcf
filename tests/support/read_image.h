// Reads a file and decodes it, as it lies.
#pragma once

#include "data/images/decode.h"
#include "engine/system/read_file.h"

#include <string>

namespace rk {

inline Image read_image(const std::string& path) {
  return decode_image(read_file(path, kMaxImageFileBytes), path);
}

}  // namespace rk
