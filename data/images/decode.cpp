#include "data/images/decode.h"

#include "data/images/decoders.h"
#include "engine/base/error.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"

#include <cstdint>
#include <cstring>
#include <string_view>

namespace rk {
namespace {

using namespace std::string_view_literals;

bool has(std::string_view file, std::size_t at, std::string_view what) {
  return file.size() >= at + what.size() && file.substr(at, what.size()) == what;
}

// Names the format of an unsupported file, for the message only.
std::string_view other_format(std::string_view file) {
  if (has(file, 0, "GIF8"sv)) return "GIF"sv;
  if (has(file, 0, "RIFF"sv) && has(file, 8, "WEBP"sv)) return "WebP"sv;
  if (has(file, 0, "II*\0"sv) || has(file, 0, "MM\0*"sv)) return "TIFF"sv;
  if (has(file, 4, "ftypavi"sv)) return "AVIF"sv;
  if (has(file, 4, "ftyp"sv)) return "HEIC"sv;
  if (has(file, 4, "jP  \r\n\x87\n"sv)) return "JPEG 2000"sv;
  if (has(file, 4, "JXL \r\n\x87\n"sv) || has(file, 0, "\xff\x0a"sv)) return "JPEG XL"sv;
  if (has(file, 0, "8BPS"sv)) return "Photoshop"sv;
  if (has(file, 0, "%PDF"sv)) return "PDF"sv;
  if (has(file, 0, "version https://git-lfs"sv)) return "git-lfs pointer"sv;
  if (file[0] == 'P' && file.size() > 2 && file[1] >= '1' && file[1] <= '7' &&
      (file[2] == '\n' || file[2] == ' ' || file[2] == '\r' || file[2] == '\t')) {
    return "PNM"sv;
  }
  const std::size_t text = file.find_first_not_of(" \t\r\n"sv);
  if (text != std::string_view::npos && file[text] == '<') return "HTML or XML page"sv;
  return "unknown format"sv;
}

}  // namespace

void check_image_size(long long width, long long height, const std::string& name) {
  if (width < 1 || height < 1) {
    fail<InputError>("{}: the header says {} x {} pixels; remove it from the data set", name, width,
                     height);
  }
  if (width > kMaxImageSide || height > kMaxImageSide || width * height > kMaxImagePixels) {
    fail<InputError>(
        "{}: {} x {} pixels, above the limits (side {}, {} pixels); scale it down or remove it",
        name, width, height, kMaxImageSide, kMaxImagePixels);
  }
}

void resize_picture(Image& picture, int width, int height, const std::string& name) {
  try {
    picture.reset(width, height);
  } catch (const DeviceError&) {
    fail<SystemError>(
        "{}: its {} x {} pixels take {} MiB, which are not there; free memory, or scale it down",
        name, width, height, (std::int64_t{3} * width * height) >> 20);
  }
}

void decode_image(std::span<const std::byte> file, const std::string& name, Image& out) {
  if (file.size() > kMaxImageFileBytes) {
    fail<InputError>("{}: {} MiB, more than the limit of {} MiB; remove it from the data set", name,
                     file.size() >> 20, kMaxImageFileBytes >> 20);
  }
  if (file.empty()) fail<InputError>("{}: empty file; copy it again or remove it", name);
  const std::string_view bytes = text_of(file);
  if (has(bytes, 0, "\xff\xd8\xff"sv)) return decode_jpeg(file, name, out);
  if (has(bytes, 0, "\x89PNG\r\n\x1a\n"sv)) return decode_png(file, name, out);
  if (has(bytes, 0, "BM"sv)) return decode_bmp(file, name, out);
  fail<InputError>("{}: not a JPEG, PNG or BMP picture ({}); convert or remove it", name,
                   other_format(bytes));
}

Image decode_image(std::span<const std::byte> file, const std::string& name) {
  Image image;
  decode_image(file, name, image);
  return image;
}

}  // namespace rk
