// libFuzzer target: any bytes decode to a picture within the limits or throw InputError, and their
// EXIF orientation is from 1 to 8.
#include "data/images/decode.h"

#include "data/images/exif.h"
#include "data/images/transform.h"
#include "engine/base/error.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int orientation = rk::exif_orientation(std::as_bytes(std::span(data, size)));
  if (orientation < 1 || orientation > 8) std::abort();
  try {
    const rk::Image image = rk::decode_image(std::as_bytes(std::span(data, size)), "fuzz");
    if (image.empty() || image.width() > rk::kMaxImageSide || image.height() > rk::kMaxImageSide ||
        static_cast<long long>(image.width()) * image.height() > rk::kMaxImagePixels) {
      std::abort();
    }
    // Reads every pixel, so that a sanitizer sees one that was not written or lies out of bounds.
    const rk::Image seen = rk::apply({32, 0, 0, 24}, image);
    if (seen.width() != 24 || seen.height() != 24) std::abort();
  } catch (const rk::InputError&) {
  }
  return 0;
}
