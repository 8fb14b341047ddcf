// Pooling of windows on a GPU: x (N, H, W, C) -> y (N, OH, OW, C), NHWC. y and dy may be a range of
// channels of a wider tensor (y_stride).
#pragma once

#include "kernels/team.h"

#include <algorithm>
#include <cstdint>

namespace rk {

struct PoolShape {
  int batch = 0;
  int channels = 0;
  int height = 0, width = 0;          // of x
  int out_height = 0, out_width = 0;  // of y
  int kernel[2] = {3, 3};             // height, width; at most 254 pixels
  int stride[2] = {2, 2};
  int padding[2] = {1, 1};  // at most half of the kernel, so every window has a pixel
  int y_stride = 0;         // elements from one pixel of y, or of dy, to the next: >= channels

  RK_FN RK_INLINE std::int64_t x_at(int image, int row, int column) const {
    return ((static_cast<std::int64_t>(image) * height + row) * width + column) * channels;
  }
  RK_FN RK_INLINE std::int64_t y_pixel(int image, int row, int column) const {
    return (static_cast<std::int64_t>(image) * out_height + row) * out_width + column;
  }
  RK_FN RK_INLINE std::int64_t y_at(int image, int row, int column) const {
    return y_pixel(image, row, column) * y_stride;
  }

  // The windows along an axis that contain a pixel: [first, end) of `count`. `step`: the stride,
  // for callers that know it at compile time.
  struct Windows {
    int first;
    int end;
  };
  RK_FN RK_INLINE Windows windows(int pixel, int axis, int count) const {
    return windows(pixel, axis, count, stride[axis]);
  }
  RK_FN RK_INLINE Windows windows(int pixel, int axis, int count, int step) const {
    const int padded = pixel + padding[axis];
    const int before = padded - kernel[axis];  // windows that start here or earlier have ended
    return {before < 0 ? 0 : before / step + 1, std::min(padded / step + 1, count)};
  }
  // Pixels of window `out` along an axis of `size`, including those in the padding.
  RK_FN RK_INLINE int extent(int out, int axis, int size) const {
    const int begin = out * stride[axis] - padding[axis];
    return std::min(begin + kernel[axis], size + padding[axis]) - begin;
  }
};

}  // namespace rk
