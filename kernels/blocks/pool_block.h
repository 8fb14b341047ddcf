// Pooling on a GPU, NHWC; definitions are those of layers/pool.h.
//
//   MaxPool, MaxPoolGradient   x (N, H, W, C) -> y (N, OH, OW, C); padding counts as minus
//                              infinity; a tie goes to the first maximum in scan order; a NaN wins
//                              only if it is the window's first pixel. Backward gathers: each pixel
//                              of dx adds the outputs that chose it, in scan order.
//   AveragePool, its gradient  sum of a window's pixels over its size, which counts padding but no
//                              pixels beyond the padding; sums in float
//   GlobalPool, its gradient   x (N, rows, C) in T -> y (N, C) in float: average, maximum, or
//                              mean(max(x, epsilon)^p)^(1/p)
//
// y and dy of MaxPool and AveragePool may be a range of channels of a wider tensor
// (PoolShape::y_stride).
//
// Bytes moved, x = sizeof(T) elements of x, y of y, c = elements of y: MaxPool x + y + c,
// MaxPoolGradient x (twice to accumulate) + y + c. GlobalPool x; its gradient x to write, x more to
// accumulate and x more for kGem.
#pragma once

#include "kernels/blocks/channel_tiles.h"
#include "kernels/blocks/pool_kind.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

namespace rk {

struct PoolShape {
  int batch = 0;
  int channels = 0;
  int height = 0, width = 0;          // of x
  int out_height = 0, out_width = 0;  // of y
  int kernel[2] = {3, 3};             // height, width; at most 255 pixels
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

// choice, unless null, gets for each output the number of the winning pixel in its window; with
// of_relu, kNoPixel if the maximum is not above 0, so that backward also applies the mask of the
// ReLU that made x.
template <class T> struct MaxPool {
  static constexpr std::uint8_t kNoPixel = 255;

  PoolShape shape;
  const T* x = nullptr;
  T* y = nullptr;
  std::uint8_t* choice = nullptr;
  bool of_relu = false;

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
    for (int i = block.thread(); i < packs * shape.out_width; i += Block::kThreads) {
      const int out_column = i / packs;
      const int channel = i % packs * kWidth;
      const int left = out_column * shape.stride[1] - shape.padding[1];
      Pack<T, kWidth> best{};
      Pack<std::uint8_t, kWidth> winner{};
      bool first = true;
      for (int kh = 0; kh < shape.kernel[0]; ++kh) {
        const int row = top + kh;
        if (row < 0 || row >= shape.height) continue;
        for (int kw = 0; kw < shape.kernel[1]; ++kw) {
          const int column = left + kw;
          if (column < 0 || column >= shape.width) continue;
          const auto values = load_pack<kWidth>(x + shape.x_at(image, row, column) + channel);
          const auto number = static_cast<std::uint8_t>(kh * shape.kernel[1] + kw);
          RK_UNROLL
          for (int k = 0; k < kWidth; ++k) {
            if (first || values[k] > best[k]) {
              best.values[k] = values.values[k];
              winner.values[k] = number;
            }
          }
          first = false;
        }
      }
      const std::int64_t pixel = shape.y_pixel(image, out_row, out_column);
      store_pack(y + pixel * shape.y_stride + channel, best);
      if (choice == nullptr) continue;
      if (of_relu) {
        RK_UNROLL
        for (int k = 0; k < kWidth; ++k) {
          if (!(best[k] > 0)) winner.values[k] = kNoPixel;
        }
      }
      store_pack(choice + pixel * shape.channels + channel, winner);
    }
  }
};

// Bytes of which a thread asks which ones equal a number. Packs are loaded and compared four bytes
// at a time: nvcc takes three instructions to get a byte out of a register.
template <int kWidth> struct ComparedBytes {
  static constexpr bool kWords = kWidth % 4 == 0;
  using Unit = std::conditional_t<kWords, std::uint32_t, std::uint8_t>;
  static constexpr int kUnits = kWords ? kWidth / 4 : kWidth;
  Pack<Unit, kUnits> units;

  RK_FN RK_INLINE static ComparedBytes load(const std::uint8_t* from) {
    ComparedBytes bytes;
    std::memcpy(static_cast<void*>(&bytes.units), std::assume_aligned<pack_alignment(kWidth)>(from),
                kWidth);
    return bytes;
  }
  // From here on equal(k) says whether byte k was `number`; none: it says no.
  RK_FN RK_INLINE void compare(int number, bool none) {
    constexpr unsigned kEvery = kWords ? 0x01010101U : 1U;
    const auto all = static_cast<Unit>(static_cast<unsigned>(number) * kEvery);
    RK_UNROLL
    for (int u = 0; u < kUnits; ++u) {
      units.values[u] = none ? static_cast<Unit>(~0U) : static_cast<Unit>(units.values[u] ^ all);
    }
  }
  RK_FN RK_INLINE bool equal(int k) const {
    return (units.values[kWords ? k / 4 : k] & 0xFFU << (kWords ? k % 4 * 8 : 0)) == 0;
  }
};

// dx is overwritten, or added to with accumulate.
template <class T> struct MaxPoolGradient {
  PoolShape shape;
  const std::uint8_t* choice = nullptr;
  const T* dy = nullptr;
  T* dx = nullptr;
  bool accumulate = false;

  static constexpr int kBlocksAtOnce = 4;
  int blocks() const { return shape.batch * shape.height; }  // one per row of dx
  template <class Block> RK_FN void operator()(const Block& block) const {
    with_pack<T>(shape.channels | shape.y_stride, [&]<int kWidth>() {
      if (shape.stride[0] == 2 && shape.stride[1] == 2) return run<kWidth, 2>(block);
      run<kWidth, 0>(block);
    });
  }

 private:
  // kStride: of both axes; 0: any.
  template <int kWidth, int kStride, class Block>
  RK_FN RK_INLINE void run(const Block& block) const {
    const int stride_y = kStride > 0 ? kStride : shape.stride[0];
    const int stride_x = kStride > 0 ? kStride : shape.stride[1];
    const int image = block.index() / shape.height;
    const int row = block.index() % shape.height;
    const int packs = shape.channels / kWidth;
    const PoolShape::Windows down = shape.windows(row, 0, shape.out_height, stride_y);
    const std::int64_t first_pixel = shape.y_pixel(image, down.first, 0);
    const std::uint8_t* const first_choices = choice + first_pixel * shape.channels;
    const T* const first_gradients = dy + first_pixel * shape.y_stride;
    T* const to_row = dx + shape.x_at(image, row, 0);
    // A thread's next pack is kThreads packs further on: columns and packs are counted on instead
    // of divided.
    const int more_columns = Block::kThreads / packs;
    const int more_packs = Block::kThreads % packs;
    int column = block.thread() / packs;
    int pack = block.thread() % packs;
    for (; column < shape.width; column += more_columns) {
      const int channel = pack * kWidth;
      const PoolShape::Windows across = shape.windows(column, 1, shape.out_width, stride_x);
      T* const to = to_row + (column * shape.channels + channel);
      float sums[kBound<kWidth>] = {};
      if (accumulate) {
        const auto held = load_pack<kWidth>(to);
        RK_UNROLL
        for (int k = 0; k < kWidth; ++k) sums[k] = held[k];
      }
      // Two windows of a row at a time, which are all of them if windows overlap by half: loads of
      // both are in flight before the first is used.
      const std::uint8_t* row_choices = first_choices + channel;
      const T* row_gradients = first_gradients + channel;
      int kh = row + shape.padding[0] - down.first * stride_y;
      for (int out_row = down.first; out_row < down.end; ++out_row) {
        for (int out_column = across.first; out_column < across.end; out_column += 2) {
          const bool both = out_column + 1 < across.end;
          const int choice_at = out_column * shape.channels;
          const int gradient_at = out_column * shape.y_stride;
          const std::uint8_t* const choices = row_choices + choice_at;
          const T* const gradients = row_gradients + gradient_at;
          auto chosen = ComparedBytes<kWidth>::load(choices);
          const auto gradient = load_pack<kWidth>(gradients);
          auto next_chosen = ComparedBytes<kWidth>::load(choices + (both ? shape.channels : 0));
          const auto next_gradient = load_pack<kWidth>(gradients + (both ? shape.y_stride : 0));
          const int kw = column + shape.padding[1] - out_column * stride_x;
          const int number = kh * shape.kernel[1] + kw;
          chosen.compare(number, false);
          next_chosen.compare(number - stride_x, !both);
          RK_UNROLL
          for (int k = 0; k < kWidth; ++k) {
            sums[k] += chosen.equal(k) ? gradient[k] : 0.0F;
            sums[k] += next_chosen.equal(k) ? next_gradient[k] : 0.0F;
          }
        }
        row_choices += static_cast<std::int64_t>(shape.out_width) * shape.channels;
        row_gradients += static_cast<std::int64_t>(shape.out_width) * shape.y_stride;
        kh -= stride_y;
      }
      Pack<T, kWidth> out;
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) out.set(k, sums[k]);
      store_pack(to, out);
      pack += more_packs;
      if (pack >= packs) {
        pack -= packs;
        ++column;
      }
    }
  }
};

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

// x^p and x^(p - 1), fast for the usual p = 3.
RK_FN RK_INLINE float pooled_power(float x, float p) {
  return p == 3.0F ? x * x * x : p == 2.0F ? x * x : std::pow(x, p);
}

// best, for kMax alone: [batch, channels], the row of the first maximum; may be null.
template <class T> struct GlobalPool {
  int batch = 0;
  int rows = 0;  // pixels of an image
  int channels = 0;
  PoolKind kind = PoolKind::kAverage;
  float p = 3;
  float epsilon = 1e-6F;
  const T* x = nullptr;
  std::int32_t* best = nullptr;
  float* y = nullptr;

  static constexpr int kColumns = ChannelTiles::kColumns;
  template <int kThreads> struct Shared {
    float values[kBound<kThreads * kPack<T>>];
    float tops[kBound<kThreads * kPack<T>>];
    int rows[kBound<kThreads * kPack<T>>];
  };
  RK_BOTH int column_tiles() const { return (channels + kColumns - 1) / kColumns; }
  int blocks() const { return batch * column_tiles(); }  // one per tile of an image's channels
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    with_pack<T>(channels, [&]<int kWidth>() { run<kWidth>(block, shared); });
  }

 private:
  // What a thread, and then a channel, has seen: a sum, or the largest value and its row. Powers
  // may overflow or vanish in float, so kGem sums powers of value / top, where top is the largest
  // value so far.
  struct Seen {
    float value;
    int row;
    float top;
  };
  static constexpr int kNoRow = std::numeric_limits<int>::max();

  RK_FN RK_INLINE Seen nothing() const {
    const bool largest = kind == PoolKind::kMax;
    return {largest ? -std::numeric_limits<float>::infinity() : 0.0F, kNoRow, epsilon};
  }
  // Equal values: keeps the smaller row. Never keeps a NaN.
  RK_FN RK_INLINE static void keep_larger(Seen& seen, float value, int row) {
    if (value > seen.value || (value == seen.value && row < seen.row)) {
      seen = {value, row, seen.top};
    }
  }
  RK_FN RK_INLINE void add_power(Seen& seen, float value) const {
    if (value > seen.top) {
      seen.value *= pooled_power(seen.top / value, p);
      seen.top = value;
    }
    seen.value += pooled_power(value / seen.top, p);
  }
  RK_FN RK_INLINE void see(Seen& seen, float value, int row) const {
    switch (kind) {
      case PoolKind::kAverage: seen.value += value; break;
      case PoolKind::kMax: keep_larger(seen, value, row); break;
      case PoolKind::kGem:
        // Not std::max, which would replace NaN by epsilon.
        add_power(seen, value < epsilon ? epsilon : value);
        break;
    }
  }

  template <int kWidth, class Block>
  RK_FN RK_INLINE void run(const Block& block, Shared<Block::kThreads>& shared) const {
    using Threads = TileThreads<Block::kThreads, kWidth>;
    constexpr int kChannels = Threads::kAcross * kWidth;
    const int across = block.thread() % Threads::kAcross;
    const int lane = block.thread() / Threads::kAcross;
    const int image = block.index() / column_tiles();
    const T* source = x + static_cast<std::int64_t>(image) * rows * channels;
    for (int v = 0; v < Threads::kPacks; v += Threads::kAcross) {
      const int channel = block.index() % column_tiles() * kColumns + v * kWidth;
      Seen seen[kBound<kWidth>];
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) seen[k] = nothing();
      if (channel + across * kWidth < channels) {
        for (int row = lane; row < rows; row += Threads::kLanes) {
          const auto values = load_pack<kWidth>(source + static_cast<std::int64_t>(row) * channels +
                                                channel + across * kWidth);
          RK_UNROLL
          for (int k = 0; k < kWidth; ++k) see(seen[k], values[k], row);
        }
      }
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        shared.values[lane * kChannels + across * kWidth + k] = seen[k].value;
        shared.rows[lane * kChannels + across * kWidth + k] = seen[k].row;
        shared.tops[lane * kChannels + across * kWidth + k] = seen[k].top;
      }
      block.sync();
      for (int c = block.thread(); c < kChannels && channel + c < channels; c += Block::kThreads) {
        finish(shared, image, c, channel + c, kChannels, Threads::kLanes);
      }
      if constexpr (Threads::kPacks > Threads::kAcross) block.sync();  // memory is overwritten next
    }
  }

  template <class Memory>
  RK_FN RK_INLINE void finish(const Memory& shared, int image, int c, int channel, int stride,
                              int lanes) const {
    const std::int64_t to = static_cast<std::int64_t>(image) * channels + channel;
    if (kind == PoolKind::kMax) {
      Seen seen = nothing();
      for (int l = 0; l < lanes; ++l) {
        keep_larger(seen, shared.values[l * stride + c], shared.rows[l * stride + c]);
      }
      const float first =
          Element<T>::widen(x[to * rows - static_cast<std::int64_t>(channel) * (rows - 1)]);
      if (first != first) seen = {first, 0, epsilon};  // a NaN in the first row wins
      y[to] = seen.value;
      if (best != nullptr) best[to] = seen.row;
      return;
    }
    const bool gem = kind == PoolKind::kGem;
    float top = epsilon;
    for (int l = 0; l < lanes; ++l) top = std::max(top, shared.tops[l * stride + c]);
    double sum = 0;
    for (int l = 0; l < lanes; ++l) {
      const auto share = static_cast<double>(shared.values[l * stride + c]);
      sum += gem ? share * static_cast<double>(pooled_power(shared.tops[l * stride + c] / top, p))
                 : share;
    }
    const double mean = sum / rows;
    y[to] = static_cast<float>(
        gem ? static_cast<double>(top) * std::pow(mean, 1.0 / static_cast<double>(p)) : mean);
  }
};

// Reads x and y for kGem, best for kMax. dx is overwritten, or added to with accumulate.
template <class T> struct GlobalPoolGradient {
  int batch = 0;
  int rows = 0;
  int channels = 0;
  PoolKind kind = PoolKind::kAverage;
  float p = 3;
  float epsilon = 1e-6F;
  const T* x = nullptr;
  const float* y = nullptr;
  const std::int32_t* best = nullptr;
  const float* dy = nullptr;
  T* dx = nullptr;
  bool accumulate = false;

  static constexpr int kColumns = ChannelTiles::kColumns;
  RK_BOTH int column_tiles() const { return (channels + kColumns - 1) / kColumns; }
  int blocks() const { return batch * column_tiles(); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    with_pack<T>(channels, [&]<int kWidth>() { run<kWidth>(block); });
  }

 private:
  template <int kWidth, class Block> RK_FN RK_INLINE void run(const Block& block) const {
    using Threads = TileThreads<Block::kThreads, kWidth>;
    const int across = block.thread() % Threads::kAcross;
    const int lane = block.thread() / Threads::kAcross;
    const int image = block.index() / column_tiles();
    for (int v = across; v < Threads::kPacks; v += Threads::kAcross) {
      const int channel = block.index() % column_tiles() * kColumns + v * kWidth;
      if (channel >= channels) continue;
      const std::int64_t pooled = static_cast<std::int64_t>(image) * channels + channel;
      float factor[kBound<kWidth>];
      float inverse[kBound<kWidth>];
      int winner[kBound<kWidth>];
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        factor[k] = dy[pooled + k];
        winner[k] = kind == PoolKind::kMax ? best[pooled + k] : 0;
        if (kind != PoolKind::kMax) factor[k] /= static_cast<float>(rows);
        inverse[k] = kind == PoolKind::kGem ? 1.0F / y[pooled + k] : 0.0F;
      }
      for (int row = lane; row < rows; row += Threads::kLanes) {
        const std::int64_t at =
            (static_cast<std::int64_t>(image) * rows + row) * channels + channel;
        Pack<T, kWidth> value{};
        Pack<T, kWidth> held{};
        if (kind == PoolKind::kGem) value = load_pack<kWidth>(x + at);
        if (accumulate) held = load_pack<kWidth>(dx + at);
        Pack<T, kWidth> out;
        RK_UNROLL
        for (int k = 0; k < kWidth; ++k) {
          float g = factor[k];
          if (kind == PoolKind::kMax && winner[k] != row) g = 0;
          if (kind == PoolKind::kGem) {
            // dy/dx = (x / y)^(p-1) / rows
            g = value[k] < epsilon ? 0.0F : g * pooled_power(value[k] * inverse[k], p - 1);
          }
          out.set(k, accumulate ? held[k] + g : g);
        }
        store_pack(dx + at, out);
      }
    }
  }
};

}  // namespace rk
