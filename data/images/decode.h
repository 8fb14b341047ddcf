// From a file to its pixels, equal byte for byte to Pillow's Image.open(f).convert('RGB').
//
// The format is told by content, never by name: JPEG (libjpeg-turbo with its defaults), PNG
// (libpng), uncompressed BMP of 1, 4, 8, 24 or 32 bits (no OS/2 ones). Grey is replicated, alpha
// dropped, CMYK taken as stored inverted (R = round(C K / 255)), 16 bits a channel cut to the high
// byte but grey 16-bit PNG clipped to 255, and EXIF orientation ignored (exif.h turns pictures),
// all as Pillow does. Limits, checked before memory is spent: file 256 MiB, side 65,500,
// 178,956,970 pixels, 100 JPEG scans, 256 MB of the coefficients that a progressive JPEG is held in
// (45 to 90 megapixels). A damaged file is refused, also where a library would only warn, and with
// it arithmetic-coded JPEG, where damage cannot be noticed. Errors: InputError "<name>: <what>;
// <what to do>". Every function may run in any number of threads.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/images/image.h"

namespace rk {

inline constexpr int kMaxImageSide = 65500;
inline constexpr long long kMaxImagePixels = 178956970;
inline constexpr std::size_t kMaxImageFileBytes = std::size_t{256} << 20;

// `file` is the whole file, `name` appears in messages.
Image decode_image(std::span<const std::byte> file, const std::string& name);
// The same into `out`, whose storage is kept where it suffices; after an error `out` is undefined.
void decode_image(std::span<const std::byte> file, const std::string& name, Image& out);
// Reads the file and decodes it.
Image read_image(const std::string& path);

}  // namespace rk
