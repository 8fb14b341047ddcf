// Mean of windows on a GPU; definitions are those of layers/pool.h: the sum of a window's pixels
// over its size, which counts padding but no pixels beyond the padding; sums in float.
#pragma once

#include "kernels/blocks/channel_tiles.h"
#include "kernels/blocks/pool_shape.h"

#include <algorithm>
#include <cstdint>

namespace rk {

template <class T> struct AveragePool {
  PoolShape shape;
  const T* x = nullptr;
  T* y = nullptr;

  int blocks() const { return shape.batch * shape.out_height; }  // one per row of y
  template <class Block> RK_FN void operator()(const Block& block) const {
    with_pack<T>(shape.channels | shape.y_stride, [&]<int kWidth>() { run<kWidth>(block); });
  }

 private:
  template <int kWidth, class Block> RK_FN RK_INLINE void run(const Block& block) const {
    const int image = block.index() / shape.out_height;
    const int out_row = block.index() % shape.out_height;
    const int packs = shape.channels / kWidth;
    const int top = out_row * shape.stride[0] - shape.padding[0];
    const int bottom = std::min(top + shape.kernel[0], shape.height);
    for (int i = block.thread(); i < packs * shape.out_width; i += Block::kThreads) {
      const int out_column = i / packs;
      const int channel = i % packs * kWidth;
      const int left = out_column * shape.stride[1] - shape.padding[1];
      const int right = std::min(left + shape.kernel[1], shape.width);
      float sums[kBound<kWidth>] = {};
      for (int row = std::max(top, 0); row < bottom; ++row) {
        for (int column = std::max(left, 0); column < right; ++column) {
          const auto values = load_pack<kWidth>(x + shape.x_at(image, row, column) + channel);
          RK_UNROLL
          for (int k = 0; k < kWidth; ++k) sums[k] += values[k];
        }
      }
      const auto size = static_cast<float>(shape.extent(out_row, 0, shape.height) *
                                           shape.extent(out_column, 1, shape.width));
      Pack<T, kWidth> out;
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) out.set(k, sums[k] / size);
      store_pack(y + shape.y_at(image, out_row, out_column) + channel, out);
    }
  }
};

// dx is overwritten, or added to with accumulate.
template <class T> struct AveragePoolGradient {
  PoolShape shape;
  const T* dy = nullptr;
  T* dx = nullptr;
  bool accumulate = false;

  int blocks() const { return shape.batch * shape.height; }  // one per row of dx
  template <class Block> RK_FN void operator()(const Block& block) const {
    with_pack<T>(shape.channels | shape.y_stride, [&]<int kWidth>() { run<kWidth>(block); });
  }

 private:
  template <int kWidth, class Block> RK_FN RK_INLINE void run(const Block& block) const {
    const int image = block.index() / shape.height;
    const int row = block.index() % shape.height;
    const int packs = shape.channels / kWidth;
    const PoolShape::Windows down = shape.windows(row, 0, shape.out_height);
    for (int i = block.thread(); i < packs * shape.width; i += Block::kThreads) {
      const int column = i / packs;
      const int channel = i % packs * kWidth;
      const PoolShape::Windows across = shape.windows(column, 1, shape.out_width);
      const std::int64_t to = shape.x_at(image, row, column) + channel;
      float sums[kBound<kWidth>] = {};
      if (accumulate) {
        const auto held = load_pack<kWidth>(dx + to);
        RK_UNROLL
        for (int k = 0; k < kWidth; ++k) sums[k] = held[k];
      }
      for (int out_row = down.first; out_row < down.end; ++out_row) {
        for (int out_column = across.first; out_column < across.end; ++out_column) {
          const auto gradient =
              load_pack<kWidth>(dy + shape.y_at(image, out_row, out_column) + channel);
          const auto size = static_cast<float>(shape.extent(out_row, 0, shape.height) *
                                               shape.extent(out_column, 1, shape.width));
          RK_UNROLL
          for (int k = 0; k < kWidth; ++k) sums[k] += gradient[k] / size;
        }
      }
      Pack<T, kWidth> out;
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) out.set(k, sums[k]);
      store_pack(dx + to, out);
    }
  }
};

}  // namespace rk
