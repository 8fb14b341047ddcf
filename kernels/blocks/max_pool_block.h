// Maximum of windows on a GPU; definitions are those of layers/pool.h. Padding counts as minus
// infinity; a tie goes to the first maximum in scan order; a NaN wins only if it is the window's
// first pixel. Backward gathers: each pixel of dx adds the outputs that chose it, in scan order.
//
// Bytes moved, x = sizeof(T) elements of x, y of y, c = elements of y: MaxPool x + y + c,
// MaxPoolGradient x (twice to accumulate) + y + c.
#pragma once

#include "kernels/blocks/channel_tiles.h"
#include "kernels/blocks/pool_shape.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

namespace rk {

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
    std::memcpy(static_cast<void*>(&bytes.units), aligned<kWidth>(from), kWidth);
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

}  // namespace rk
