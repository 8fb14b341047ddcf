#include "data/images/exif.h"

#include "data/images/decode.h"
#include "data/images/decoders.h"
#include "engine/base/error.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace rk {
namespace {

using namespace std::string_view_literals;

constexpr unsigned kOrientationTag = 0x0112;
constexpr std::string_view kExifBegins = "Exif\0\0"sv;
constexpr std::size_t kFieldBytes = 12;

// Reads numbers of a block in the block's byte order; 0 beyond its end.
struct Numbers {
  std::string_view bytes;
  bool little = false;

  std::uint32_t at(std::size_t offset, std::size_t count) const {
    if (offset > bytes.size() || bytes.size() - offset < count) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = little ? count - 1 - i : i;
      value = value << 8 | static_cast<unsigned char>(bytes[offset + place]);
    }
    return value;
  }
};

// Bytes of one value of a field's type, if that is a whole number; else 0.
std::size_t bytes_of(std::uint32_t type) {
  constexpr std::uint32_t kShort = 3, kLong = 4, kSByte = 6, kSShort = 8, kSLong = 9;
  switch (type) {
    case kSByte: return 1;
    case kShort:
    case kSShort: return 2;
    case kLong:
    case kSLong: return 4;
    default: return 0;
  }
}

// The orientation stated in a TIFF block: its 8-byte header gives the offset of the first
// directory, which is a count followed by that many fields (tag, type, number of values, and the
// values, or where they are if they take more than four bytes).
int orientation_in(std::string_view tiff) {
  const bool little = tiff.starts_with("II*\0"sv);
  if (!little && !tiff.starts_with("MM\0*"sv)) return kUpright;
  const Numbers number{tiff, little};
  const std::size_t directory = number.at(4, 4);
  const std::size_t fields = number.at(directory, 2);
  for (std::size_t i = 0; i < fields; ++i) {
    const std::size_t field = directory + 2 + i * kFieldBytes;
    if (field + kFieldBytes > tiff.size()) break;
    if (number.at(field, 2) != kOrientationTag) continue;
    const std::size_t each = bytes_of(number.at(field + 2, 2));
    const std::size_t all = each * number.at(field + 4, 4);
    const std::size_t place = all > 4 ? number.at(field + 8, 4) : field + 8;
    if (all == 0 || place > tiff.size() || tiff.size() - place < all) return kUpright;
    const std::uint32_t value = number.at(place, each);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : kUpright;
  }
  return kUpright;
}

// The payload of the first APP1 segment that begins with "Exif" and precedes the first scan.
std::string_view exif_of_jpeg(std::string_view file) {
  constexpr unsigned kApp1 = 0xE1, kStartOfScan = 0xDA, kEnd = 0xD9;
  const Numbers number{file};
  std::size_t at = 2;  // after the start-of-image marker
  while (at + 4 <= file.size()) {
    if (number.at(at, 1) != 0xFF) return {};
    const unsigned marker = number.at(at + 1, 1);
    if (marker == 0xFF) {  // padding
      ++at;
      continue;
    }
    if (marker == kStartOfScan || marker == kEnd) return {};
    const std::size_t length = number.at(at + 2, 2);  // includes its own two bytes
    if (length < 2) return {};
    const std::string_view segment = file.substr(at + 4, length - 2);
    if (marker == kApp1 && segment.starts_with(kExifBegins)) {
      return segment.substr(kExifBegins.size());
    }
    at += 2 + length;
  }
  return {};
}

// The first eXIf chunk (length, name, content, checksum). Some writers also put the "Exif" prefix
// of the JPEG segment into it.
std::string_view exif_of_png(std::string_view file) {
  const Numbers number{file};
  std::size_t at = 8;
  while (at + 12 <= file.size()) {
    const std::size_t length = number.at(at, 4);
    const std::string_view name = file.substr(at + 4, 4);
    if (name == "eXIf"sv) {
      const std::string_view content = file.substr(at + 8, length);
      return content.starts_with(kExifBegins) ? content.substr(kExifBegins.size()) : content;
    }
    if (name == "IEND"sv) return {};
    at += 12 + length;
  }
  return {};
}

// Exchanges left and right.
void mirror_across(Image& image) {
  for (int y = 0; y < image.height(); ++y) {
    for (int left = 0, right = image.width() - 1; left < right; ++left, --right) {
      std::swap_ranges(image.pixel(left, y), image.pixel(left + 1, y), image.pixel(right, y));
    }
  }
}

// Exchanges top and bottom.
void mirror_down(Image& image) {
  for (int top = 0, bottom = image.height() - 1; top < bottom; ++top, --bottom) {
    std::swap_ranges(image.row(top), image.row(top + 1), image.row(bottom));
  }
}

// Rows become columns.
Image transposed(const Image& image, const std::string& name) {
  Image out;
  resize_picture(out, image.height(), image.width(), name);
  // Walking down a column of `image` touches a new cache line at every pixel; 16 result rows at a
  // time reuse each line.
  constexpr int kRows = 16;
  for (int top = 0; top < out.height(); top += kRows) {
    const int bottom = std::min(out.height(), top + kRows);
    for (int x = 0; x < out.width(); ++x) {
      for (int y = top; y < bottom; ++y) {
        std::memcpy(out.pixel(x, y), image.pixel(y, x), Image::kChannels);
      }
    }
  }
  return out;
}

}  // namespace

int exif_orientation(std::span<const std::byte> file) {
  const std::string_view bytes = text_of(file);
  if (bytes.starts_with("\xff\xd8"sv)) return orientation_in(exif_of_jpeg(bytes));
  if (bytes.starts_with("\x89PNG\r\n\x1a\n"sv)) return orientation_in(exif_of_png(bytes));
  return kUpright;
}

Image turn_upright(Image image, int orientation, const std::string& name) {
  expect(orientation >= 1 && orientation <= 8, "[exif] expected an orientation of 1 to 8, got {}",
         orientation);
  if (orientation >= 5) image = transposed(image, name);
  if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7)
    mirror_across(image);
  if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8)
    mirror_down(image);
  return image;
}

Photo read_photo(const std::string& path, bool upright) {
  std::vector<std::byte> file = read_file(path, kMaxImageFileBytes);
  Photo photo{decode_image(file, path), exif_orientation(file)};
  // Frees the memory, which `= {}` would keep: turning may hold the picture twice.
  file = std::vector<std::byte>();
  if (upright) photo.image = turn_upright(std::move(photo.image), photo.orientation, path);
  return photo;
}

}  // namespace rk
