// Uncompressed BMP of 1, 4, 8, 24 or 32 bits a pixel; with 32 bits also channel masks of whole
// bytes (BI_BITFIELDS). Decoded here rather than by a library: the packaged stb_image pads a
// truncated file with zeros and reads past a short palette, so every field would have to be checked
// here anyway, after which decoding the pixels takes three lines.
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "data/images/decode.h"
#include "data/images/decoders.h"
#include "engine/base/error.h"

namespace rk {
namespace {

constexpr std::size_t kFileHeader = 14;
constexpr std::size_t kInfoHeader = 40;  // BITMAPINFOHEADER; later versions only append to it
constexpr std::uint32_t kMasks = 3;      // BI_BITFIELDS: uncompressed, with channel masks
constexpr std::size_t kMasksBytes = 12;

std::uint32_t word(std::span<const std::byte> file, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;)
    value = value << 8 | std::to_integer<std::uint32_t>(file[at + i]);
  return value;
}

}  // namespace

void decode_bmp(std::span<const std::byte> file, const std::string& name, Image& out) {
  const auto corrupt = [&](const char* what) {
    fail<InputError>("{}: corrupt BMP ({}); copy it again or remove it", name, what);
  };
  const auto need = [&](std::size_t bytes) {
    if (file.size() < bytes) corrupt("the file ends too early");
  };
  need(kFileHeader + 4);
  const std::uint64_t info_bytes = word(file, kFileHeader);
  if (info_bytes < kInfoHeader) {
    fail<InputError>("{}: BMP of the OS/2 kind; convert it to PNG", name);
  }
  need(kFileHeader + kInfoHeader);
  const std::uint64_t pixels_at = word(file, 10);
  const auto width = static_cast<std::int32_t>(word(file, 18));
  const auto signed_height = static_cast<std::int32_t>(word(file, 22));
  const std::uint32_t bits = word(file, 26) >> 16;
  const std::uint32_t compression = word(file, 30);
  const std::uint64_t stated_colours = word(file, 46);
  const bool indexed = bits == 1 || bits == 4 || bits == 8;
  // Byte offsets of red, green and blue in a pixel or, for indexed pictures, in a palette entry.
  std::array<std::size_t, 3> place = {2, 1, 0};
  bool known = compression == 0 && (indexed || bits == 24 || bits == 32);
  const bool masked = compression == kMasks && bits == 32;
  if (masked) {
    need(kFileHeader + kInfoHeader + kMasksBytes);
    known = true;
    for (std::size_t c = 0; c < place.size(); ++c) {
      const std::uint32_t mask = word(file, kFileHeader + kInfoHeader + 4 * c);
      const int low = std::countr_zero(mask);
      known = known && low % 8 == 0 && mask >> (low & 31) == 255;
      place[c] = static_cast<std::size_t>(low / 8);
    }
  }
  if (!known) {
    fail<InputError>("{}: BMP of {} bits with compression {}; convert it to PNG", name, bits,
                     compression);
  }
  const bool top_down = signed_height < 0;
  const long long tall = top_down ? -static_cast<long long>(signed_height) : signed_height;
  check_image_size(width, tall, name);

  const bool masks_behind = masked && info_bytes == kInfoHeader;  // else inside the header
  const std::uint64_t palette_at = kFileHeader + info_bytes + (masks_behind ? kMasksBytes : 0);
  const std::uint64_t most = indexed ? std::uint64_t{1} << bits : 0;
  const std::uint64_t colours = !indexed ? 0 : stated_colours == 0 ? most : stated_colours;
  if (colours > 256) corrupt("more than 256 colours");
  const std::uint64_t row_bytes = (static_cast<std::uint64_t>(width) * bits + 31) / 32 * 4;
  if (palette_at + 4 * colours > pixels_at) corrupt("the palette runs into the pixels");
  if (pixels_at + row_bytes * static_cast<std::uint64_t>(tall) > file.size()) {
    corrupt("the file ends too early");
  }

  const int height = static_cast<int>(tall);
  resize_picture(out, width, height, name);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  const std::uint8_t* palette = bytes + palette_at;
  for (int y = 0; y < height; ++y) {
    const int stored = top_down ? y : height - 1 - y;
    const std::uint8_t* in = bytes + pixels_at + static_cast<std::uint64_t>(stored) * row_bytes;
    std::uint8_t* rgb = out.row(y);
    for (int x = 0; x < width; ++x, rgb += 3) {
      const std::size_t bit = static_cast<std::size_t>(x) * bits;
      const std::uint8_t* bgr = in + bit / 8;
      if (indexed) {
        // The leftmost pixel is in the highest bits of a byte.
        const unsigned index = (*bgr >> (8 - bits - bit % 8)) & ((1U << bits) - 1);
        if (index >= colours) corrupt("a colour outside the palette");
        bgr = palette + std::size_t{4} * index;
      }
      for (std::size_t c = 0; c < place.size(); ++c) rgb[c] = bgr[place[c]];
    }
  }
}

}  // namespace rk
