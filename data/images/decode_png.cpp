// PNG by libpng's low-level interface: the simplified interface would apply gAMA. The library
// reports errors by longjmp, which must not skip a destructor: every library call is therefore made
// from a lambda without destructors, run by attempt().
#include "data/images/decode.h"
#include "data/images/decoders.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/read_file.h"

#include <fmt/format.h>
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rk {
namespace {

class PngDecoder {
 public:
  explicit PngDecoder(std::span<const std::byte> file) : rest_(file) {}
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  template <class F> bool attempt(F f) {
    if (setjmp(jump_) != 0) return false;
    f();
    return true;
  }
  const char* why() const { return why_.data(); }
  bool out_of_memory() const { return out_of_memory_; }  // the file may be good
  bool whitened() const { return whitened_; }            // 16-bit grey that held values above 255

  bool read_header() {
    return attempt([&] {
      png_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, this, stop, warn, this, allocate,
                                      nullptr);
      if (png_ == nullptr) stop_here("libpng cannot start");
      // Some writers state a smaller window of their compressed data than they use: as in Pillow,
      // that is no damage.
      png_set_option(png_, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
      info_ = png_create_info_struct(png_);
      if (info_ == nullptr) stop_here("out of memory");
      png_set_read_fn(png_, this, read);
      // The size is checked after the header has been read, with a clearer message.
      png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
      png_set_chunk_malloc_max(png_, 0);  // no chunk exceeds the file, whose size has a limit
      png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
      // Pillow's pixels depend on no ancillary chunk, so none is parsed: no gamma, no profile, no
      // inflated text. The library's -1 does not cover tRNS, so tRNS is listed explicitly.
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
      static constexpr std::array<png_byte, 5> kTransparency{'t', 'R', 'N', 'S', 0};
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kTransparency.data(), 1);
      png_read_info(png_, info_);
    });
  }

  bool has_alpha() const { return (png_get_color_type(png_, info_) & PNG_COLOR_MASK_ALPHA) != 0; }
  long long width() const { return png_get_image_width(png_, info_); }
  long long height() const { return png_get_image_height(png_, info_); }

  bool read_pixels(Image& out) {
    return attempt([&] {
      const int depth = png_get_bit_depth(png_, info_);
      const int colour = png_get_color_type(png_, info_);
      // Pillow clips 16-bit values to 255 for grey only.
      const bool clipped = depth == 16 && colour == PNG_COLOR_TYPE_GRAY;
      if (!clipped) {
        png_set_strip_16(png_);  // the high byte
        if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
        if (colour == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png_);
        png_set_strip_alpha(png_);
        png_set_gray_to_rgb(png_);
      }
      const int passes = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
      const std::size_t pixel_bytes = clipped ? 2 : 3;
      if (png_get_rowbytes(png_, info_) != pixel_bytes * static_cast<std::size_t>(out.width())) {
        stop_here("row of an unexpected length");
      }
      // The passes of an interlaced picture accumulate in `out`.
      for (int pass = 0; pass < passes; ++pass) {
        for (int y = 0; y < out.height(); ++y) png_read_row(png_, out.row(y), nullptr);
      }
      png_read_end(png_, nullptr);  // the rest of the file must be intact too
      if (clipped) {
        for (int y = 0; y < out.height(); ++y) {
          if (spread_gray16(out.row(y), out.width())) whitened_ = true;
        }
      }
    });
  }

 private:
  // Expands big-endian 16-bit grey, stored at the start of an RGB row, to RGB in place. Goes from
  // right to left: pixel x is written at byte 3x, past all bytes that are still to be read. Returns
  // whether a value was above 255.
  static bool spread_gray16(std::uint8_t* row, int width) {
    bool cut = false;
    for (int x = width - 1; x >= 0; --x) {
      const std::uint8_t* gray = row + 2 * static_cast<std::size_t>(x);
      const std::uint8_t level = gray[0] != 0 ? 255 : gray[1];
      cut = cut || gray[0] != 0;
      std::memset(row + 3 * static_cast<std::size_t>(x), level, 3);
    }
    return cut;
  }

  static void read(png_structp png, png_bytep target, std::size_t count) {
    auto& self = *static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (count > self.rest_.size()) self.stop_here("the file ends too early");
    std::memcpy(target, self.rest_.data(), count);
    self.rest_ = self.rest_.subspan(count);
  }
  // What the library says of a refusal depends on what it wanted the memory for.
  static png_voidp allocate(png_structp png, png_alloc_size_t bytes) {
    void* memory = std::malloc(bytes);
    auto& self = *static_cast<PngDecoder*>(png_get_mem_ptr(png));
    if (memory == nullptr) self.out_of_memory_ = true;
    return memory;
  }
  static void stop(png_structp png, png_const_charp message) {
    static_cast<PngDecoder*>(png_get_error_ptr(png))->stop_here(message);
  }
  // Warnings stop too: with all ancillary chunks skipped, they concern picture data, or a palette
  // that the colour type makes a suggestion. A palette that is needed raises errors.
  static void warn(png_structp png, png_const_charp message) {
    if (std::strncmp(message, "PLTE", 4) != 0) stop(png, message);
  }
  [[noreturn]] void stop_here(const char* message) {
    std::snprintf(why_.data(), why_.size(), "%s", message);
    std::longjmp(jump_, 1);
  }

  std::span<const std::byte> rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_{};
  std::array<char, 200> why_{};
  bool whitened_ = false, out_of_memory_ = false;
};

}  // namespace

void decode_png(std::span<const std::byte> file, const std::string& name, Image& out) {
  PngDecoder decoder(file);
  const auto require = [&](bool done) {
    if (done) return;
    if (decoder.out_of_memory()) {
      fail<SystemError>("{}: decoding it takes more memory than there is; free memory", name);
    }
    fail<InputError>("{}: corrupt PNG ({}); copy it again or remove it", name, decoder.why());
  };
  require(decoder.read_header());
  const bool alpha = decoder.has_alpha();  // before the decoder strips it
  check_image_size(decoder.width(), decoder.height(), name);
  resize_picture(out, static_cast<int>(decoder.width()), static_cast<int>(decoder.height()), name);
  require(decoder.read_pixels(out));
  if (decoder.whitened()) {
    note_first("grey PNG of 16 bits",
               fmt::format("{}: a grey PNG of 16 bits, as there may be more; as in Pillow, all "
                           "values above 255 are white: store such pictures with 8 bits",
                           name));
  }
  if (alpha) {
    note_first("alpha", fmt::format("{}: has an alpha channel, as others may; as in Pillow's "
                                    "convert('RGB'), it is left out, so that what is hidden under "
                                    "transparent parts is seen: put cut-outs on a background",
                                    name));
  }
}

}  // namespace rk
