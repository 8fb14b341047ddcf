#include "data/images/encode_png.h"

#include <png.h>

#include <stdexcept>
#include <string>

namespace rk {

std::vector<std::byte> encode_png(const Image& image) {
  png_image control{};
  control.version = PNG_IMAGE_VERSION;
  control.width = static_cast<png_uint_32>(image.width());
  control.height = static_cast<png_uint_32>(image.height());
  control.format = PNG_FORMAT_RGB;
  // Room for the worst case, so that the picture is compressed once and not twice.
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(control);
  std::vector<std::byte> bytes(size);
  const bool done =
      png_image_write_to_memory(&control, bytes.data(), &size, 0, image.data(), 0, nullptr) != 0;
  const std::string message = control.message;
  png_image_free(&control);
  if (!done) throw std::runtime_error("[encode_png] " + message);
  bytes.resize(size);
  return bytes;
}

}  // namespace rk
