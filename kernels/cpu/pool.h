// Pooling on the CPU over the layouts of engine/tape/layout.h; planes (image, channel group) are
// independent, so every result is the same for any number of threads.
#pragma once

#include "engine/tape/layout.h"
#include "kernels/blocks/pool_kind.h"

#include <array>
#include <cstdint>

namespace rk::pool_cpu {

struct Window {
  std::array<std::int64_t, 2> kernel, stride, padding;  // height, width
};

// y_gap, dy_gap: elements between an image of y and the next, if y is a range of channels of a
// wider tensor.

// Padding counts as minus infinity. choice, unless null, gets for each output the number of the
// winning window element (counted row by row); ties go to the first. At most 254 elements a window.
void max_pool(int threads, const ImageLayout& x, const ImageLayout& y, const Window& window,
              const float* in, std::uint8_t* choice, float* out, std::int64_t y_gap = 0);
// dx (overwritten, or added to) = dy at the winners.
void max_pool_backward(int threads, const ImageLayout& x, const ImageLayout& y,
                       const Window& window, const std::uint8_t* choice, const float* dy, float* dx,
                       bool accumulate, std::int64_t dy_gap = 0);

// Sum of a window's pixels over the window's size, which counts padding but no pixels beyond the
// padding.
void average_pool(int threads, const ImageLayout& x, const ImageLayout& y, const Window& window,
                  const float* in, float* out, std::int64_t y_gap = 0);
void average_pool_backward(int threads, const ImageLayout& x, const ImageLayout& y,
                           const Window& window, const float* dy, float* dx, bool accumulate,
                           std::int64_t dy_gap = 0);

// Global poolings: out is (N, C).
// best, for kMax only: the row of the first maximum, per (N, C).
void global_pool(int threads, const ImageLayout& x, PoolKind kind, const Gem& gem, const float* in,
                 std::int64_t* best, float* out);
void global_pool_backward(int threads, const ImageLayout& x, PoolKind kind, const Gem& gem,
                          const float* in, const float* out, const std::int64_t* best,
                          const float* dy, float* dx, bool accumulate);

}  // namespace rk::pool_cpu
