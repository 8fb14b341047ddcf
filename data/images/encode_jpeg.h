// A picture as the bytes of a baseline JPEG file, for thumbnails: small rather than exact.
#pragma once

#include <cstddef>
#include <vector>

#include "data/images/image.h"

namespace rk {

// quality: 1 to 100, as libjpeg scales its tables; chroma is halved both ways.
std::vector<std::byte> encode_jpeg(const Image& image, int quality);

}  // namespace rk
