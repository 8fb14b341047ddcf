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

// What the headers say, checked against the file's size as far as the palette.
struct Layout {
  int width = 0, height = 0;
  bool top_down = false;
  std::uint32_t bits = 0;                      // of a pixel
  bool runs = false;                           // RLE8 or RLE4
  std::array<std::size_t, 3> place = kStored;  // bytes of red, green and blue in a pixel
  std::uint64_t palette_at = 0, colours = 0;   // 0 colours: pixels are no indices
  std::size_t entry_bytes = 4;                 // of the palette
  std::uint64_t pixels_at = 0;

  bool indexed() const { return bits < 24; }
};

// Refuses what is not decoded here, too.
class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> file, const std::string& name)
      : file_(file), name_(name) {}

  Layout read() {
    need(kFileHeader + kCoreHeader);
    const std::uint64_t info_bytes = word(file_, kFileHeader);
    const bool core = info_bytes == kCoreHeader;
    if (!core && info_bytes < kInfoHeader) {
      fail<InputError>("{}: BMP with a header of {} bytes; convert it to PNG", name_, info_bytes);
    }
    if (!core) need(kFileHeader + kInfoHeader);
    Layout out;
    out.bits = half_word(file_, core ? 24 : 28);
    const std::uint32_t compression = core ? 0 : word(file_, 30);
    out.runs = (compression == kRuns8 && out.bits == 8) || (compression == kRuns4 && out.bits == 4);
    const bool indexed = out.bits == 1 || out.bits == 4 || out.bits == 8;
    const bool plain = compression == 0 && (indexed || out.bits == 24 || out.bits == 32);
    const bool masked = compression == kMasks && out.bits == 32;
    if (!out.runs && !plain && !(masked && read_masks(out))) {
      fail<InputError>("{}: BMP of {} bits with compression {}; convert it to PNG", name_, out.bits,
                       compression);
    }
    read_size(core, out);
    // With the first version of the header the masks follow it, else they are in it.
    const bool masks_behind = masked && info_bytes == kInfoHeader;
    out.palette_at = kFileHeader + info_bytes + (masks_behind ? kMasksBytes : 0);
    out.entry_bytes = core ? 3 : 4;
    if (indexed) {
      const std::uint64_t stated = core ? 0 : word(file_, 46);
      out.colours = stated == 0 ? std::uint64_t{1} << out.bits : stated;
    }
    if (out.colours > kMostColours) corrupt("more than 256 colours");
    out.pixels_at = word(file_, 10);
    // Some writers state no place, or that of the palette.
    if (out.pixels_at == 0 || out.pixels_at == out.palette_at) {
      out.pixels_at = out.palette_at + out.entry_bytes * out.colours;
    }
    if (out.pixels_at < out.palette_at) corrupt("the header runs into the pixels");
    return out;
  }

  [[noreturn]] void corrupt(const char* what) const {
    fail<InputError>("{}: corrupt BMP ({}); copy it again or remove it", name_, what);
  }
  void need(std::size_t bytes) const {
    if (file_.size() < bytes) corrupt("the file ends too early");
  }

 private:
  // Whether the masks are whole bytes.
  bool read_masks(Layout& out) const {
    need(kFileHeader + kInfoHeader + kMasksBytes);
    bool whole = true;
    for (std::size_t c = 0; c < out.place.size(); ++c) {
      const std::uint32_t mask = word(file_, kFileHeader + kInfoHeader + 4 * c);
      const int low = std::countr_zero(mask);
      whole = whole && low % 8 == 0 && mask >> (low & 31) == 255;
      out.place[c] = static_cast<std::size_t>(low / 8);
    }
    return whole;
  }

  void read_size(bool core, Layout& out) const {
    const auto width = static_cast<std::int32_t>(core ? half_word(file_, 18) : word(file_, 18));
    const auto height = static_cast<std::int32_t>(core ? half_word(file_, 20) : word(file_, 22));
    out.top_down = height < 0;
    const long long tall = out.top_down ? -static_cast<long long>(height) : height;
    check_image_size(width, tall, name_);
    out.width = width;
    out.height = static_cast<int>(tall);
  }

  std::span<const std::byte> file_;
  const std::string& name_;
};

}  // namespace

void decode_bmp(std::span<const std::byte> file, const std::string& name, Image& out) {
  HeaderReader header(file, name);
  const Layout layout = header.read();
  const int width = layout.width, height = layout.height;
  const auto stored_row = [&](std::int64_t y) {
    return out.row(static_cast<int>(layout.top_down ? y : height - 1 - y));
  };
  std::array<Colour, kMostColours> palette{};
  if (layout.indexed()) {
    palette =
        read_palette(file, layout.palette_at, layout.entry_bytes, layout.colours, layout.bits);
  }
  if (layout.runs) {
    resize_picture(out, width, height, name);
    const auto put = [&](std::int64_t pixel, unsigned index) {
      std::memcpy(stored_row(pixel / width) + 3 * (pixel % width), palette[index].data(), 3);
    };
    if (!undo_runs(file, layout.pixels_at, layout.bits == 4, width, std::int64_t{width} * height,
                   put)) {
      header.corrupt("its pixels end too early");
    }
    return;
  }
  const std::uint64_t row_bytes = (static_cast<std::uint64_t>(width) * layout.bits + 31) / 32 * 4;
  header.need(layout.pixels_at + row_bytes * static_cast<std::uint64_t>(height));
  resize_picture(out, width, height, name);
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(file.data()) + layout.pixels_at;
  for (int y = 0; y < height; ++y) {
    const std::uint8_t* in = pixels + static_cast<std::uint64_t>(y) * row_bytes;
    std::uint8_t* rgb = stored_row(y);
    for (int x = 0; x < width; ++x, rgb += 3) {
      const std::size_t bit = static_cast<std::size_t>(x) * layout.bits;
      const std::uint8_t* stored = in + bit / 8;
      if (layout.indexed()) {
        // The leftmost pixel is in the highest bits of a byte.
        const unsigned index = (*stored >> (8 - layout.bits - bit % 8)) & ((1U << layout.bits) - 1);
        std::memcpy(rgb, palette[index].data(), 3);
      } else {
        for (std::size_t c = 0; c < 3; ++c) rgb[c] = stored[layout.place[c]];
      }
    }
  }
}

}  // namespace rk
