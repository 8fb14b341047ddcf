// The memory layout of an image tensor (N, H, W, C).
//
// `block` channels of one pixel are adjacent: element (n, y, x, c) is at
//   ((n * C/block + c/block) * H*W + y*W + x) * block + c % block.
// block == C is NHWC, the layout of every interface. Within the CPU back end, a chain of layers
// keeps block = 16 (AVX-512) or 8 (AVX2), which oneDNN's direct convolutions run on; the kernels
// over channels are written for this description and so work in both layouts.
#pragma once

#include "engine/base/shape.h"

#include <array>
#include <cstdint>

namespace rk {

struct ImageLayout {
  std::int64_t batch = 0;
  std::int64_t blocks = 0;  // C / block
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t block = 0;  // adjacent channels

  std::int64_t pixels() const { return height * width; }
  std::int64_t channels() const { return blocks * block; }
  std::int64_t plane() const { return pixels() * block; }  // elements of one (image, block)
  std::int64_t planes() const { return batch * blocks; }
  std::int64_t elements() const { return planes() * plane(); }
  // Elements between one image and the next, if they are a range of a larger tensor's channels.
  std::int64_t gap(std::int64_t image_stride) const { return image_stride - blocks * plane(); }
};

// shape is (N, H, W, C), block divides C.
inline ImageLayout image_layout(const Shape& shape, std::int64_t block) {
  expect_image(shape, "layout");
  expect(block > 0 && shape[3] % block == 0, "[layout] expected a divisor of {} channels, got {}",
         shape[3], block);
  return {shape[0], shape[3] / block, shape[1], shape[2], block};
}

// Space to depth: images (N, H, W, C), with `padding` rows and columns of zeros at the top and
// left, are cut into cells of side x side pixels. Each cell becomes one pixel of side * side * C
// channels:
//   y[n, i, j, (a side + b) C + c] = x[n, i side + a - padding, j side + b - padding, c],
// and 0 where x has no such pixel, and in any channels beyond these. A convolution of x with stride
// `side` and this padding equals a convolution of y with neither, and `side` times fewer taps in
// each direction.
struct SpaceToDepth {
  std::int64_t side = 1;
  std::array<std::int64_t, 2> padding{0, 0};  // height, width
  Shape image;                                // of x
};

}  // namespace rk
