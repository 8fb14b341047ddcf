#include "data/images/transform.h"

#include "data/images/decode.h"
#include "data/images/resize.h"
#include "engine/base/error.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rk {
namespace {

// One axis of a centre crop: which part of the resized length is taken, and its position in the
// result.
struct Window {
  int begin;  // in the resized picture
  int length;
  int margin;  // zeros before it in the result
};

Window centre_window(int size, int crop) {
  if (crop == 0) return {0, size, 0};
  if (size < crop) return {0, size, (crop - size) / 2};
  // Python's round(): halves go to the even neighbour, which is the default rounding mode.
  return {static_cast<int>(std::nearbyint((size - crop) / 2.0)), crop, 0};
}

}  // namespace

ImageTransform resize_and_crop(int resize, bool stretch, int crop) {
  if (stretch)
    return {.short_side = 0, .exact_width = resize, .exact_height = resize, .crop = crop};
  return {.short_side = resize, .exact_width = 0, .exact_height = 0, .crop = crop};
}

ImageSize resized_size(int width, int height, const ImageTransform& transform) {
  if (transform.short_side == 0) {
    if (transform.exact_width == 0) return {width, height};
    return {transform.exact_width, transform.exact_height};
  }
  const int shorter = std::min(width, height);
  const int longer = std::max(width, height);
  const auto scaled =
      static_cast<std::int64_t>(static_cast<double>(transform.short_side) * longer / shorter);
  if (width <= height) return {transform.short_side, scaled};
  return {scaled, transform.short_side};
}

Image apply(const ImageTransform& transform, const Image& image) {
  expect(!image.empty(), "[transform] expected a picture, got an empty one");
  expect(transform.short_side >= 0 && transform.crop >= 0 && transform.exact_width >= 0 &&
             (transform.exact_width > 0) == (transform.exact_height > 0),
         "[transform] expected sizes above zero, got short side {}, exact {} x {}, crop {}",
         transform.short_side, transform.exact_width, transform.exact_height, transform.crop);
  const ImageSize size = resized_size(image.width(), image.height(), transform);
  // Without a crop the whole result is allocated; with a crop only the lengths must fit an int.
  const bool countable = std::max(size.width, size.height) <= std::int64_t{1} << 30;
  if (!countable || (transform.crop == 0 && size.width * size.height > kMaxImagePixels)) {
    fail<InputError>(
        "a picture of {} x {} would be {} x {} after resizing, which is too large; give a smaller "
        "--resize",
        image.width(), image.height(), size.width, size.height);
  }
  const auto width = static_cast<int>(size.width);
  const auto height = static_cast<int>(size.height);
  const Window across = centre_window(width, transform.crop);
  const Window down = centre_window(height, transform.crop);
  Image inner = resize_part(image, {0, 0, image.width(), image.height()}, width, height,
                            {across.begin, down.begin, across.length, down.length});
  if (transform.crop == 0 || (across.length == transform.crop && down.length == transform.crop)) {
    return inner;
  }
  Image padded(transform.crop, transform.crop);
  std::memset(padded.data(), 0, padded.bytes());
  for (int y = 0; y < inner.height(); ++y) {
    std::memcpy(padded.pixel(across.margin, down.margin + y), inner.row(y), inner.row_bytes());
  }
  return padded;
}

FloatTable::FloatTable(const std::array<double, 3>& mean, const std::array<double, 3>& std) {
  for (std::size_t c = 0; c < 3; ++c) {
    const auto less = static_cast<float>(mean[c]), divisor = static_cast<float>(std[c]);
    for (std::size_t level = 0; level < 256; ++level) {
      // Three float32 operations, each rounded, as in ToTensor and Normalize.
      table_[c * 256 + level] = (static_cast<float>(level) / 255.0F - less) / divisor;
    }
  }
}

void FloatTable::to_chw(const Image& image, float* out) const {
  const std::size_t pixels = image.bytes() / 3;
  const std::uint8_t* bytes = image.data();
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < 3; ++c) out[c * pixels + i] = table_[c * 256 + bytes[i * 3 + c]];
  }
}

void FloatTable::to_nhwc(const Image& image, float* out) const {
  const std::size_t pixels = image.bytes() / 3;
  const std::uint8_t* bytes = image.data();
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < 3; ++c) out[i * 3 + c] = table_[c * 256 + bytes[i * 3 + c]];
  }
}

}  // namespace rk
