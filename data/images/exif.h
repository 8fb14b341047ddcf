// Which way up a picture is: the tag Orientation (0x0112) of Exif 2.3, 4.6.4 A, as cameras write it
// into the first Exif segment (APP1) of a JPEG or the eXIf chunk of a PNG. Its values tell where
// the first row and the first column of the stored pixels belong: 1 top left (as it is stored), 2
// top right, 3 bottom right, 4 bottom left, 5 left top, 6 right top, 7 right bottom, 8 left bottom.
// It is a SHORT, and a LONG is taken as well, as Pillow does. What XMP says is not looked at.
#pragma once

#include "data/images/image.h"

#include <cstddef>
#include <span>

namespace rk {

inline constexpr int kUpright = 1;

// 1 to 8; 1 where the file, which may hold anything, states none that is sound. Reads no byte
// outside `file`, allocates nothing and looks at each byte of it a few times at most.
int exif_orientation(std::span<const std::byte> file);

// The picture with its first row on top and its first column on the left: what
// PIL.ImageOps.exif_transpose makes of it.
Image turn_upright(Image image, int orientation);

}  // namespace rk
