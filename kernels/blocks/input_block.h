// Turns images into a network's input on a GPU: uint8 (N, side, side, 3) -> T (N, side, side,
// padded_channels), normalised, with zeros in the channels after the third; or in cells of cell x
// cell pixels (SpaceToDepth in engine/tape/layout.h), T (N, cell_rows, cell_columns,
// padded_channels). Values come from the table of FloatTable (data/images/transform.h), so in float
// they have the same bits as on the CPU.
//
// Bytes moved: 3 a pixel, and the output; the table stays in cache.
#pragma once

#include "kernels/element.h"

#include <cstdint>

namespace rk {

template <class T> struct FillInput {
  int batch = 0;
  int side = 0;
  int padded_channels = 3;
  const std::uint8_t* pixels = nullptr;
  const float* table = nullptr;  // [3, 256]
  T* out = nullptr;
  struct Cells {
    int side = 1;  // 1: pixels by themselves
    int rows = 0;
    int columns = 0;
    int padding_y = 0;
    int padding_x = 0;
  } cells = {};

  // One block per row of an image, or per row of its cells.
  int blocks() const { return batch * (cells.side == 1 ? side : cells.rows); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    if (cells.side == 2) return gather<2>(block);
    if (cells.side != 1) return gather<0>(block);
    switch (padded_channels) {
      case 4: return run<4>(block);
      case 8: return run<8>(block);
      default: return run<0>(block);
    }
  }

 private:
  // The value of a pixel; 0 outside the image.
  RK_FN RK_INLINE float value(int image, int y, int x, int colour) const {
    if (y < 0 || x < 0 || y >= side || x >= side) return 0.0F;
    const std::int64_t pixel = (static_cast<std::int64_t>(image) * side + y) * side + x;
    return table[colour * 256 + pixels[pixel * 3 + colour]];
  }

  // One thread per cell, which is a whole number of packs. kSide: pixels of a cell's side; 0: any.
  template <int kSide, class Block> RK_FN RK_INLINE void gather(const Block& block) const {
    const int cell = kSide > 0 ? kSide : cells.side;
    const int image = block.index() / cells.rows;
    const int y = block.index() % cells.rows * cell - cells.padding_y;
    for (int column = block.thread(); column < cells.columns; column += Block::kThreads) {
      const int x = column * cell - cells.padding_x;
      T* to = out +
              (static_cast<std::int64_t>(block.index()) * cells.columns + column) * padded_channels;
      for (int first = 0; first < padded_channels; first += kPack<T>) {
        Pack<T, kPack<T>> values;
        RK_UNROLL
        for (int k = 0; k < kPack<T>; ++k) {
          const int pixel = (first + k) / 3;
          const int colour = (first + k) % 3;
          values.set(k, pixel < cell * cell
                            ? value(image, y + pixel / cell, x + pixel % cell, colour)
                            : 0.0F);
        }
        store_pack(to + first, values);
      }
    }
  }

  // kPadded: the number of channels stored at once; 0: stored one by one.
  template <int kPadded, class Block> RK_FN RK_INLINE void run(const Block& block) const {
    const std::uint8_t* row = pixels + static_cast<std::int64_t>(block.index()) * side * 3;
    T* to = out + static_cast<std::int64_t>(block.index()) * side * padded_channels;
    for (std::int64_t x = block.thread(); x < side; x += Block::kThreads) {
      const std::uint8_t* pixel = row + 3 * x;
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
