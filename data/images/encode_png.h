// A picture as the bytes of an 8-bit RGB PNG file in sRGB, which says in a tEXt chunk who wrote it:
// Software: Rankine.
#pragma once

#include <cstddef>
#include <istream>
#include <vector>

#include "data/images/image.h"

namespace rk {

std::vector<std::byte> encode_png(const Image& image);

// Whether encode_png() made what `file` holds from its beginning; false for whatever is no PNG.
// Looks at the chunks before the pixels alone.
bool is_encoded_by_rankine(std::istream& file);

}  // namespace rk
