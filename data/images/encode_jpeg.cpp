// As in decode_jpeg.cpp, libjpeg-turbo reports errors by longjmp: it may leave only compress(),
// which has no destructors.
#include "data/images/encode_jpeg.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
// jpeglib.h needs FILE and size_t declared before it.
#include <jpeglib.h>

#include <array>
#include <stdexcept>
#include <string>

namespace rk {
namespace {

struct Errors {
  jpeg_error_mgr manager;
  std::jmp_buf out;
  std::array<char, JMSG_LENGTH_MAX> message;
};

// Writes the file into `bytes`, which the library allocates; on failure returns false with a
// message in `errors`.
bool compress(const Image& image, int quality, Errors& errors, unsigned char** bytes,
              unsigned long* size) {
  jpeg_compress_struct info{};
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = [](j_common_ptr failed) {
    auto* own = reinterpret_cast<Errors*>(failed->err);
    failed->err->format_message(failed, own->message.data());
    std::longjmp(own->out, 1);
  };
  if (setjmp(errors.out) != 0) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, bytes, size);
  info.image_width = static_cast<JDIMENSION>(image.width());
  info.image_height = static_cast<JDIMENSION>(image.height());
  info.input_components = Image::kChannels;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.optimize_coding = TRUE;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    // The library only reads the row, though its type is not const.
    auto* row = const_cast<JSAMPLE*>(image.row(static_cast<int>(info.next_scanline)));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

}  // namespace

std::vector<std::byte> encode_jpeg(const Image& image, int quality) {
  Errors errors{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool done = compress(image, quality, errors, &bytes, &size);
  std::vector<std::byte> file;
  if (done) {
    const auto* begin = reinterpret_cast<const std::byte*>(bytes);
    file.assign(begin, begin + size);
  }
  std::free(bytes);
  if (!done) throw std::runtime_error(std::string("[encode_jpeg] ") + errors.message.data());
  return file;
}

}  // namespace rk
