// Pictures into a network's input on a GPU: uint8 (N, height, width, 3) -> T (N, side, side,
// padded_channels), cut out, turned left to right, normalised, with zeros in the channels behind
// the third. Values come from the table of FloatTable (data/images/transform.h), so in float they
// are the CPU's to the bit.
//
// Bytes moved: 3 + sizeof(T) padded_channels a pixel of the output; the table stays in cache.
#pragma once

#include "kernels/element.h"

#include <cstdint>

namespace rk {

// The window of an image, inside it: pixel (y, x) of the output is (top + y, left + x), with flip
// (top + y, left + side - 1 - x).
struct InputWindow {
  std::int32_t top = 0;
  std::int32_t left = 0;
  std::int32_t flip = 0;
};

template <class T> struct FillInput {
  int batch = 0;
  int height = 0;
  int width = 0;
  int side = 0;
  int padded_channels = 3;
  const std::uint8_t* pixels = nullptr;
  const InputWindow* windows = nullptr;  // [batch], or null: from the corner, unturned
  const float* table = nullptr;          // [3, 256]
  T* out = nullptr;

  int blocks() const { return batch * side; }  // a block a row of an image
  template <class Block> RK_FN void operator()(const Block& block) const {
    switch (padded_channels) {
      case 4: return run<4>(block);
      case 8: return run<8>(block);
      default: return run<0>(block);
    }
  }

 private:
  // kPadded is the number of channels that are stored at once; 0: one by one.
  template <int kPadded, class Block> RK_FN RK_INLINE void run(const Block& block) const {
    const int image = block.index() / side;
    const int y = block.index() % side;
    const InputWindow window = windows != nullptr ? windows[image] : InputWindow{};
    const std::uint8_t* row =
        pixels +
        ((static_cast<std::int64_t>(image) * height + window.top + y) * width + window.left) * 3;
    T* to = out + static_cast<std::int64_t>(block.index()) * side * padded_channels;
    for (std::int64_t x = block.thread(); x < side; x += Block::kThreads) {
      const std::int64_t column = window.flip != 0 ? side - 1 - x : x;
      const std::uint8_t* pixel = row + 3 * column;
      if constexpr (kPadded > 0) {
        Pack<T, kPadded> values;
        RK_UNROLL
        for (int c = 0; c < kPadded; ++c) {
          values.set(c, c < 3 ? table[c * 256 + pixel[c]] : 0.0F);
        }
        store_pack(to + x * kPadded, values);
      } else {
        for (int c = 0; c < padded_channels; ++c) {
          to[x * padded_channels + c] =
              Element<T>::narrow(c < 3 ? table[c * 256 + pixel[c]] : 0.0F);
        }
      }
    }
  }
};

}  // namespace rk
