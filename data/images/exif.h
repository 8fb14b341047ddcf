// Which way up a picture is: the tag Orientation (0x0112) of Exif 2.3, 4.6.4 A, as cameras write it
// into the first Exif segment (APP1) of a JPEG or the eXIf chunk of a PNG. Its value says at which
// sides of the upright picture the first row and the first column of the stored pixels belong: 1
// top left (as stored), 2 top right, 3 bottom right, 4 bottom left, 5 left top, 6 right top, 7
// right bottom, 8 left bottom. The tag is one SHORT; other whole numbers, and the first of several,
// are accepted too, as in Pillow. Orientation in XMP and in a PNG's text is ignored.
#pragma once

#include "data/images/image.h"

#include <cstddef>
#include <span>
#include <string>

namespace rk {

inline constexpr int kUpright = 1;

// Returns 1 to 8; 1 if the file, whose content may be arbitrary, has no valid orientation. Reads no
// byte outside `file`, allocates nothing and reads each byte a few times at most.
int exif_orientation(std::span<const std::byte> file);

// Returns the upright picture, as PIL.ImageOps.exif_transpose does: in place for 1 to 4; turning 5
// to 8 holds the picture twice. Throws SystemError, naming `name`, if there is not the memory.
Image turn_upright(Image image, int orientation, const std::string& name);

struct Photo {
  Image image;
  int orientation = kUpright;  // as the file states it, whether or not `image` was turned
};

// Reads and decodes the file, and turns the picture upright if asked to. Errors as read_file() and
// decode_image().
Photo read_photo(const std::string& path, bool upright);

}  // namespace rk
