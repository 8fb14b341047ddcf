// A picture as the bytes of an 8-bit RGB PNG file.
#pragma once

#include <cstddef>
#include <vector>

#include "data/images/image.h"

namespace rk {

std::vector<std::byte> encode_png(const Image& image);

}  // namespace rk
