// Decodes image files to pixels, equal byte for byte to Pillow's Image.open(f).convert('RGB').
//
// The format is detected from the content, never from the name: JPEG (libjpeg-turbo with its
// defaults), PNG (libpng), BMP of 1, 4 or 8 bits, also in runs (RLE), and of 24 or 32. As in
// Pillow, grey is replicated to R, G and B, alpha is dropped, CMYK is taken as stored inverted (R =
// round(C K / 255)), 16-bit channels are cut to their high byte except that 16-bit grey PNG is
// clipped to 255, an index beyond the palette is black, and EXIF orientation is ignored (exif.h
// turns pictures). Limits, checked before memory is allocated: file 256 MiB, side 65,500,
// 178,956,970 pixels, 100 JPEG scans, and 256 MB for the coefficients of a progressive JPEG (45 to
// 90 megapixels). Damaged files are refused even where a library would only warn; so is
// arithmetic-coded JPEG, in which damage cannot be detected. Headers that say too little or too
// much of pixels that are whole are no damage: a PNG's small window, no place of a BMP's pixels.
// Errors: InputError "<name>: <what>; <what to do>"; SystemError if there is not the memory. All
// functions are thread-safe.
#pragma once

#include "data/images/image.h"

#include <cstddef>
#include <span>
#include <string>

namespace rk {

inline constexpr int kMaxImageSide = 65500;
inline constexpr long long kMaxImagePixels = 178956970;
inline constexpr std::size_t kMaxImageFileBytes = std::size_t{256} << 20;

// `file` holds the whole file; `name` appears in messages.
Image decode_image(std::span<const std::byte> file, const std::string& name);
// Decodes into `out`, reusing its storage if large enough; after an error the content of `out` is
// undefined.
void decode_image(std::span<const std::byte> file, const std::string& name, Image& out);

}  // namespace rk
