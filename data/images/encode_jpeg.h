// Encodes a picture as a baseline JPEG file, for thumbnails: small rather than exact.
#pragma once

#include "data/images/image.h"

#include <cstddef>
#include <vector>

namespace rk {

// quality: 1 to 100, on libjpeg's scale; chroma is subsampled by two on both axes.
std::vector<std::byte> encode_jpeg(const Image& image, int quality);

}  // namespace rk
