// Encodes a picture as an 8-bit RGB PNG file in sRGB, with a tEXt chunk "Software: Rankine".
#pragma once

#include "data/images/image.h"

#include <cstddef>
#include <istream>
#include <vector>

namespace rk {

std::vector<std::byte> encode_png(const Image& image);

// Whether `file`, read from its beginning, was written by encode_png(); false if it is not a PNG.
// Reads only the chunks before the pixel data.
bool is_encoded_by_rankine(std::istream& file);

}  // namespace rk
