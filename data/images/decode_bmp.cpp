// BMP of 1, 4 or 8 bits a pixel with a palette, uncompressed or in runs (RLE8, RLE4), and of 24 or
// 32 bits; with 32 bits also channel masks of whole bytes (BI_BITFIELDS). Decoded here rather than
// by a library: the packaged stb_image pads a truncated file with zeros and reads past a short
// palette, so every field would have to be checked here anyway, after which decoding the pixels
// takes a few lines. Where headers say too little, they are understood as in Pillow. Pillow
// misreads pictures of 4 or 8 bits in black and white alone (and of 4 bits in the greys 0 to 15);
// these are read as they are meant.
#include "data/images/decode.h"
#include "data/images/decoders.h"
#include "engine/base/error.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace rk {
namespace {

constexpr std::size_t kFileHeader = 14;
constexpr std::size_t kCoreHeader = 12;  // BITMAPCOREHEADER, of OS/2
constexpr std::size_t kInfoHeader = 40;  // BITMAPINFOHEADER; later versions only append to it
constexpr std::uint32_t kRuns8 = 1, kRuns4 = 2;
constexpr std::uint32_t kMasks = 3;  // BI_BITFIELDS: uncompressed, with channel masks
constexpr std::size_t kMasksBytes = 12;
constexpr std::size_t kMostColours = 256;

using Colour = std::array<std::uint8_t, 3>;                // red, green, blue
constexpr std::array<std::size_t, 3> kStored = {2, 1, 0};  // byte offsets of these in a file

std::uint32_t number(std::span<const std::byte> file, std::size_t at, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes; i-- > 0;)
    value = value << 8 | std::to_integer<std::uint32_t>(file[at + i]);
  return value;
}

std::uint32_t word(std::span<const std::byte> file, std::size_t at) { return number(file, at, 4); }

std::uint32_t half_word(std::span<const std::byte> file, std::size_t at) {
  return number(file, at, 2);
}

// Indices beyond the `count` entries, and entries beyond the file, are black. As in Pillow, a
// palette of the levels 0, 1, 2, ... (with one bit: 0, 255) makes a grey picture, in which every
// index stands for its level.
std::array<Colour, kMostColours> read_palette(std::span<const std::byte> file, std::size_t at,
                                              std::size_t entry_bytes, std::size_t count,
                                              std::uint32_t bits) {
  std::array<Colour, kMostColours> palette{};
  std::array<Colour, kMostColours> levels{};
  for (std::size_t i = 0; i < kMostColours; ++i) {
    levels[i].fill(static_cast<std::uint8_t>(bits == 1 ? 255 * i : i));
  }
  for (std::size_t i = 0; i < count && at + entry_bytes <= file.size(); ++i, at += entry_bytes) {
    for (std::size_t c = 0; c < 3; ++c) {
      palette[i][c] = std::to_integer<std::uint8_t>(file[at + kStored[c]]);
    }
  }
  return std::equal(levels.begin(), levels.begin() + static_cast<std::ptrdiff_t>(count),
                    palette.begin())
             ? levels
             : palette;
}

// Undoes RLE8 or RLE4 (`halves`: an index has half a byte), which begins at `at`: calls put(number
// of the pixel, index) for `count` pixels, row after row of the file; false: the file ends, or says
// that the picture does, before the last one. A code has two bytes: (n, i) for n times i, or the
// halves of i in turn; (0, 0) ends the row; (0, 1) ends the picture; (0, 2) skips as many pixels
// and rows as the next two bytes say; (0, n) is followed by n indices, padded to whole words.
// Pixels that are skipped have the index 0. As in Pillow, repeated pixels end with their row,
// listed ones go on in the next, and a row of which there is nothing yet is not ended.
template <class Put>
bool undo_runs(std::span<const std::byte> file, std::size_t at, bool halves, std::int64_t width,
               std::int64_t count, const Put& put) {
  std::int64_t done = 0;
  std::int64_t in_row = 0;
  const auto byte = [&](std::size_t place) { return std::to_integer<unsigned>(file[place]); };
  const auto index = [&](unsigned code, std::int64_t i) {
    return !halves ? code : i % 2 == 0 ? code >> 4 : code & 15;
  };
  const auto skip = [&](std::int64_t pixels) {
    for (const std::int64_t end = std::min(count, done + pixels); done < end;) put(done++, 0U);
  };
  while (done < count) {
    if (file.size() < at + 2) return false;
    const unsigned n = byte(at), code = byte(at + 1);
    at += 2;
    if (n > 0) {
      const std::int64_t fits = std::clamp<std::int64_t>(width - in_row, 0, n);
      in_row += fits;
      for (std::int64_t i = 0; i < fits && done < count; ++i) put(done++, index(code, i));
    } else if (code == 0) {
      if (done % width != 0) skip(width - done % width);
      in_row = 0;
    } else if (code == 1) {
      return false;
    } else if (code == 2) {
      if (file.size() < at + 2) return false;
      skip(byte(at) + byte(at + 1) * width);
      at += 2;
      in_row = done % width;
    } else {
      const std::int64_t listed = std::min<std::int64_t>(code, count - done);
      const auto bytes = static_cast<std::size_t>(halves ? (listed + 1) / 2 : listed);
      if (file.size() < at + bytes) return false;
      for (std::int64_t i = 0; i < listed; ++i) {
        put(done++, index(byte(at + static_cast<std::size_t>(halves ? i / 2 : i)), i));
      }
      in_row += code;
      at += bytes;
      at += at % 2;
    }
  }
  return true;
}

}  // namespace

void decode_bmp(std::span<const std::byte> file, const std::string& name, Image& out) {
  const auto corrupt = [&](const char* what) {
    fail<InputError>("{}: corrupt BMP ({}); copy it again or remove it", name, what);
  };
  const auto need = [&](std::size_t bytes) {
    if (file.size() < bytes) corrupt("the file ends too early");
  };
  need(kFileHeader + kCoreHeader);
  const std::uint64_t info_bytes = word(file, kFileHeader);
  const bool core = info_bytes == kCoreHeader;
  if (!core && info_bytes < kInfoHeader) {
    fail<InputError>("{}: BMP with a header of {} bytes; convert it to PNG", name, info_bytes);
  }
  if (!core) need(kFileHeader + kInfoHeader);
  const auto width = static_cast<std::int32_t>(core ? half_word(file, 18) : word(file, 18));
  const auto signed_height = static_cast<std::int32_t>(core ? half_word(file, 20) : word(file, 22));
  const std::uint32_t bits = half_word(file, core ? 24 : 28);
  const std::uint32_t compression = core ? 0 : word(file, 30);
  const std::uint64_t stated_colours = core ? 0 : word(file, 46);
  const bool indexed = bits == 1 || bits == 4 || bits == 8;
  const bool runs = (compression == kRuns8 && bits == 8) || (compression == kRuns4 && bits == 4);
  std::array<std::size_t, 3> place = kStored;
  bool known = runs || (compression == 0 && (indexed || bits == 24 || bits == 32));
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
  if (colours > kMostColours) corrupt("more than 256 colours");
  const std::size_t entry_bytes = core ? 3 : 4;
  std::uint64_t pixels_at = word(file, 10);
  // Some writers state no place, or that of the palette.
  if (pixels_at == 0 || pixels_at == palette_at) pixels_at = palette_at + entry_bytes * colours;
  if (pixels_at < palette_at) corrupt("the header runs into the pixels");

  const int height = static_cast<int>(tall);
  const auto stored_row = [&](std::int64_t y) {
    return out.row(static_cast<int>(top_down ? y : height - 1 - y));
  };
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  std::array<Colour, kMostColours> palette{};
  if (indexed) palette = read_palette(file, palette_at, entry_bytes, colours, bits);
  if (runs) {
    resize_picture(out, width, height, name);
    const auto put = [&](std::int64_t pixel, unsigned index) {
      std::memcpy(stored_row(pixel / width) + 3 * (pixel % width), palette[index].data(), 3);
    };
    if (!undo_runs(file, pixels_at, bits == 4, width, std::int64_t{width} * height, put)) {
      corrupt("its pixels end too early");
    }
    return;
  }
  const std::uint64_t row_bytes = (static_cast<std::uint64_t>(width) * bits + 31) / 32 * 4;
  if (pixels_at + row_bytes * static_cast<std::uint64_t>(tall) > file.size()) {
    corrupt("the file ends too early");
  }
  resize_picture(out, width, height, name);
  for (int y = 0; y < height; ++y) {
    const std::uint8_t* in = bytes + pixels_at + static_cast<std::uint64_t>(y) * row_bytes;
    std::uint8_t* rgb = stored_row(y);
    for (int x = 0; x < width; ++x, rgb += 3) {
      const std::size_t bit = static_cast<std::size_t>(x) * bits;
      const std::uint8_t* stored = in + bit / 8;
      if (indexed) {
        // The leftmost pixel is in the highest bits of a byte.
        const unsigned index = (*stored >> (8 - bits - bit % 8)) & ((1U << bits) - 1);
        std::memcpy(rgb, palette[index].data(), 3);
      } else {
        for (std::size_t c = 0; c < place.size(); ++c) rgb[c] = stored[place[c]];
      }
    }
  }
}

}  // namespace rk
