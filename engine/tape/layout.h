// How an image tensor (N, H, W, C) lies in memory.
//
// `width` channels of one pixel are neighbours: element (n, y, x, c) is at
//   ((n * C/width + c/width) * H*W + y*W + x) * width + c % width.
// width == C is NHWC, the layout of every interface. Inside the CPU back end a chain of layers
// keeps width = 16 (AVX-512) or 8 (AVX2), which is what oneDNN's direct convolutions run on; the
// channel kernels are written against this description and so serve both.
#pragma once

#include "engine/base/shape.h"

#include <array>
#include <cstdint>

namespace rk {

struct ImageLayout {
  std::int64_t batch = 0;
  std::int64_t groups = 0;  // C / width
  std::int64_t height = 0;
  std::int64_t columns = 0;  // the image's width in pixels
  std::int64_t width = 0;    // channels side by side

  std::int64_t rows() const { return height * columns; }
  std::int64_t channels() const { return groups * width; }
  std::int64_t plane() const { return rows() * width; }  // elements of one (image, group)
  std::int64_t planes() const { return batch * groups; }
  std::int64_t elements() const { return planes() * plane(); }
};

// shape is (N, H, W, C), width divides C.
inline ImageLayout image_layout(const Shape& shape, std::int64_t width) {
  expect(shape.rank() == 4, "[layout] expected (N, H, W, C), got {}", shape.text());
  expect(width > 0 && shape[3] % width == 0, "[layout] expected a divisor of {} channels, got {}",
         shape[3], width);
  return {shape[0], shape[3] / width, shape[1], shape[2], width};
}

// Copies between NHWC and any layout; float32.
void to_nhwc(const ImageLayout& layout, const float* stored, float* nhwc);
void from_nhwc(const ImageLayout& layout, const float* nhwc, float* stored);

// Space to depth: images (N, H, W, C) with `padding` zeros in front of rows and columns, cut into
// cells of `side` x `side` pixels, each of which is a pixel of side * side * C channels:
//   y[n, i, j, (a side + b) C + c] = x[n, i side + a - padding, j side + b - padding, c],
// and 0 where x has no such pixel, and in what channels there are behind these. A convolution over
// x with that stride and padding is one over y with neither, and `side` times fewer taps each way.
struct SpaceToDepth {
  std::int64_t side = 1;
  std::array<std::int64_t, 2> padding{0, 0};  // height, width
  Shape image;                                // of x
};

// The width that oneDNN's direct convolutions want on this processor: 16, 8, or 0 for none.
std::int64_t convolution_width();

}  // namespace rk
