// Turns a picture into network input: torchvision's Resize, CenterCrop, ToTensor and Normalize on a
// PIL image, bit for bit.
//
// Resize takes either a short side s, which makes the long side int(s * long / short), or an exact
// size. CenterCrop starts at round-half-to-even((size - crop) / 2) on each axis; a picture smaller
// than the crop is padded with zeros, (crop - size) / 2 of them, rounded down, on the left and top.
// ToTensor and Normalize are float32: (u8 / 255 - mean) / std.
#pragma once

#include "data/images/image.h"

#include <array>
#include <cstdint>
#include <span>

namespace rk {

struct ImageSize {
  std::int64_t width = 0;
  std::int64_t height = 0;
};

struct ImageTransform {
  int short_side = 256;  // 0: `exact_width` x `exact_height`; all 0: no resizing
  int exact_width = 0;
  int exact_height = 0;
  int crop = 224;  // side of the centre crop; 0: none
};

// Resize to a short side of `resize` or, to stretch, to `resize` x `resize`; 0: not at all. Then
// CenterCrop(crop).
ImageTransform resize_and_crop(int resize, bool stretch, int crop);

// The size after Resize, before CenterCrop.
ImageSize resized_size(int width, int height, const ImageTransform& transform);
// Resize and CenterCrop. Only the cropped part is computed. Throws InputError if an uncropped
// result exceeds the pixel limit of decode.h (an extreme aspect ratio) or a side exceeds 2^30
// before the crop.
Image apply(const ImageTransform& transform, const Image& image);

// Normalisation by a table of 3 x 256 float32.
class FloatTable {
 public:
  // Both are rounded to float32 first, as torchvision does.
  FloatTable(const std::array<double, 3>& mean, const std::array<double, 3>& std);
  void to_chw(const Image& image, float* out) const;   // (3, H, W)
  void to_nhwc(const Image& image, float* out) const;  // (H, W, 3)
  float value(int channel, std::uint8_t level) const {
    return table_[static_cast<std::size_t>(channel) * 256 + level];
  }
  std::span<const float> levels() const { return table_; }  // [3, 256]

 private:
  std::array<float, std::size_t{3} * 256> table_;
};

}  // namespace rk
