// Uses libpng's low-level interface: the simplified interface writes no text. The library reports
// errors by longjmp, which must not skip a destructor: see decode_png.cpp.
#include "data/images/encode_png.h"

#include <png.h>

#include <array>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rk {
namespace {

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kKey = "Software", kWriter = "Rankine";

class PngEncoder {
 public:
  explicit PngEncoder(std::span<std::byte> room) : room_(room) {}
  ~PngEncoder() { png_destroy_write_struct(&png_, &info_); }
  PngEncoder(const PngEncoder&) = delete;
  PngEncoder& operator=(const PngEncoder&) = delete;

  std::size_t written() const { return written_; }
  const char* why() const { return why_.data(); }

  bool write(const Image& image) {
    if (setjmp(jump_) != 0) return false;
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, stop, ignore);
    if (png_ == nullptr) stop_here("libpng cannot start");
    info_ = png_create_info_struct(png_);
    if (info_ == nullptr) stop_here("out of memory");
    png_set_write_fn(png_, this, append, flush);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(image.width()),
                 static_cast<png_uint_32>(image.height()), 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
    png_set_sRGB(png_, info_, PNG_sRGB_INTENT_PERCEPTUAL);
    png_text text{};
    text.compression = PNG_TEXT_COMPRESSION_NONE;
    text.key = key_.data();
    text.text = writer_.data();
    png_set_text(png_, info_, &text, 1);
    png_write_info(png_, info_);
    for (int y = 0; y < image.height(); ++y) png_write_row(png_, image.row(y));
    png_write_end(png_, nullptr);
    return true;
  }

 private:
  static void append(png_structp png, png_bytep bytes, std::size_t count) {
    auto& self = *static_cast<PngEncoder*>(png_get_io_ptr(png));
    if (count > self.room_.size() - self.written_) self.stop_here("larger than a PNG can be");
    std::memcpy(self.room_.data() + self.written_, bytes, count);
    self.written_ += count;
  }
  static void flush(png_structp) {}
  static void ignore(png_structp, png_const_charp) {}
  static void stop(png_structp png, png_const_charp message) {
    static_cast<PngEncoder*>(png_get_error_ptr(png))->stop_here(message);
  }
  [[noreturn]] void stop_here(const char* message) {
    std::snprintf(why_.data(), why_.size(), "%s", message);
    std::longjmp(jump_, 1);
  }

  std::span<std::byte> room_;
  std::size_t written_ = 0;
  std::string key_{kKey}, writer_{kWriter};  // libpng's interface takes non-const pointers
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_{};
  std::array<char, 200> why_{};
};

// Upper bound of the file size: the worst case of the pixels, plus the text.
std::size_t most_bytes(const Image& image) {
  png_image control{};
  control.version = PNG_IMAGE_VERSION;
  control.width = static_cast<png_uint_32>(image.width());
  control.height = static_cast<png_uint_32>(image.height());
  control.format = PNG_FORMAT_RGB;
  constexpr std::size_t kAroundChunk = 12;
  return PNG_IMAGE_PNG_SIZE_MAX(control) + kAroundChunk + kKey.size() + 1 + kWriter.size();
}

}  // namespace

std::vector<std::byte> encode_png(const Image& image) {
  std::vector<std::byte> bytes(most_bytes(image));
  PngEncoder encoder(bytes);
  if (!encoder.write(image)) throw std::runtime_error(std::string("[encode_png] ") + encoder.why());
  bytes.resize(encoder.written());
  return bytes;
}

bool is_encoded_by_rankine(std::istream& file) {
  std::array<char, kSignature.size()> begins{};
  file.read(begins.data(), begins.size());
  if (!file || std::string_view(begins.data(), begins.size()) != kSignature) return false;
  const std::string ours = std::string(kKey) + '\0' + std::string(kWriter);
  std::array<char, 8> head{};  // length and name of a chunk
  while (file.read(head.data(), head.size())) {
    std::uint32_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8U | static_cast<std::uint8_t>(head[i]);
    const std::string_view name(head.data() + 4, 4);
    if (name == "IDAT" || name == "IEND") return false;
    constexpr std::streamoff kChecksum = 4;
    if (name != "tEXt" || length != ours.size()) {
      file.seekg(static_cast<std::streamoff>(length) + kChecksum, std::ios::cur);
      continue;
    }
    std::string text(ours.size(), '\0');
    if (file.read(text.data(), static_cast<std::streamsize>(text.size())) && text == ours) {
      return true;
    }
    file.seekg(kChecksum, std::ios::cur);
  }
  return false;
}

}  // namespace rk
