// Two batch normalisations with batch statistics whose results are added and go through a ReLU, on
// a GPU: the last one of a residual block (x) and the one of its shortcut (s), over (rows,
// channels), NHWC.
//
//   y = relu( fma(x - mean, scale, beta) + fma(s - mean_s, scale_s, beta_s) )
//   g = dy where ReLU passed the value, else 0; the gradients of x and of s follow from g as in
//   batchnorm_gradient_block.h
//
//   forward   BatchNormSums and BatchNormStatistics for x and for s, BatchNormJoin
//   backward  BatchNormJoinGradientSums, BatchNormGradientFactors for x and for s,
//             BatchNormJoinGradientApply
//
// Neither the normalised shortcut nor g is ever in memory.
//
// Bytes moved, e = sizeof(T) rows channels: Join 3e, where two separate normalisations move 5e;
// GradientSums 3e and GradientApply 5e, where separate ones move 11e.
#pragma once

#include "kernels/blocks/batchnorm_block.h"

#include <cmath>
#include <cstdint>

namespace rk {

// One of the two: its input [rows, channels], and its numbers for each channel.
template <class T> struct JoinedSide {
  const T* values = nullptr;
  const float* mean = nullptr;
  const float* scale = nullptr;
  const float* beta = nullptr;
};

// signs [sign_bytes<T>(rows, channels)] is written unless null. y may be x.values or s.values.
template <class T> struct BatchNormJoin {
  std::int64_t rows = 0;
  int channels = 0;
  JoinedSide<T> x, s;
  std::uint8_t* signs = nullptr;
  T* y = nullptr;

  static constexpr int kBlocksAtOnce = 4;
  template <int kThreads> using Shared = TileNumbers<6>;
  RK_BOTH ChannelTiles tiles() const { return {rows, channels}; }
  int blocks() const { return tiles().blocks(); }
  template <class Block> RK_FN void operator()(const Block& block, TileNumbers<6>& numbers) const {
    with_pack<T>(channels, [&]<int kWidth>() { run<kWidth>(LastBlockFirst(block), numbers); });
  }

 private:
  template <int kWidth> struct Row { Pack<T, kWidth> x, s; };

  template <int kWidth, class Block>
  RK_FN RK_INLINE void run(const Block& block, TileNumbers<6>& numbers) const {
    constexpr int kPart = TileNumbers<6>::template kPart<kWidth>;
    const ChannelTiles all = tiles();
    numbers.template fill<kWidth>(block, all, {x.mean, x.scale, x.beta, s.mean, s.scale, s.beta});
    for_columns<kWidth>(block, all, [&](int channel, int first, int end, int step) {
      const std::int64_t origin = all.origin(all.row_tile(block.index()), channel);
      const int column = channel - all.first_column(block.index());
      const int both = first + last_row(first, end, step);
      for_rows_together<2>(
          first, end, step,
          [&](int row) {
            const int at = (both - row) * channels;
            return Row<kWidth>{load_pack<kWidth>(x.values + origin + at),
                               load_pack<kWidth>(s.values + origin + at)};
          },
          [&]<int kRows>(int row, auto& held) {
            unsigned bits[kBound<kRows>] = {};
            RK_UNROLL
            for (int from = 0; from < kWidth; from += kPart) {
              const auto mean = numbers.template load<kWidth>(0, column + from);
              const auto scale = numbers.template load<kWidth>(1, column + from);
              const auto beta = numbers.template load<kWidth>(2, column + from);
              const auto mean_s = numbers.template load<kWidth>(3, column + from);
              const auto scale_s = numbers.template load<kWidth>(4, column + from);
              const auto beta_s = numbers.template load<kWidth>(5, column + from);
              RK_UNROLL
              for (int r = 0; r < kRows; ++r) {
                RK_UNROLL
                for (int p = 0; p < kPart; ++p) {
                  const int k = from + p;
                  const float value = std::fma(held[r].x[k] - mean[p], scale[p], beta[p]) +
                                      std::fma(held[r].s[k] - mean_s[p], scale_s[p], beta_s[p]);
                  bits[r] |= value > 0 ? 1U << k : 0U;
                  held[r].x.set(k, rectified(value));
                }
              }
            }
            RK_UNROLL
            for (int r = 0; r < kRows; ++r) {
              const int at = (both - row - r * step) * channels;
              store_pack(y + origin + at, held[r].x);
              if (signs != nullptr) {
                sign_of<kWidth>(signs, origin, at) = static_cast<std::uint8_t>(bits[r]);
              }
            }
          });
    });
  }
};

// The inputs of both backward passes.
template <class T> struct BatchNormJoinBackward {
  // One row of three tensors has as many loads in flight as two rows in the other passes, and
  // leaves registers for as many threads.
  static constexpr int kRowsAtOnce = 1;

  std::int64_t rows = 0;
  int channels = 0;
  const T* x = nullptr;
  const T* s = nullptr;
  const T* dy = nullptr;
  const std::uint8_t* signs = nullptr;
  const float* mean = nullptr;
  const float* mean_s = nullptr;

  RK_BOTH ChannelTiles tiles() const { return {rows, channels}; }

  template <int kWidth> struct Row {
    Pack<T, kWidth> x, s, dy;
    unsigned bits;

    // g of the pack's element k.
    RK_FN RK_INLINE float gradient(int k) const { return (bits >> k & 1U) != 0 ? dy[k] : 0.0F; }
  };
  template <int kWidth> RK_FN RK_INLINE Row<kWidth> load(std::int64_t origin, int at) const {
    return {load_pack<kWidth>(x + origin + at), load_pack<kWidth>(s + origin + at),
            load_pack<kWidth>(dy + origin + at), sign_of<kWidth>(signs, origin, at)};
  }
};

// partial: double [row_tiles, 2, channels], sums of g and of g (x - mean); partial_s: sums of g and
// of g (s - mean_s); both as BatchNormGradientFactors takes them.
template <class T> struct BatchNormJoinGradientSums {
  BatchNormJoinBackward<T> in;
  double* partial = nullptr;
  double* partial_s = nullptr;

  static constexpr int kBlocksAtOnce = 4;
  template <int kThreads> struct Shared {
    TileSumsMemory<T, 3, kThreads> sums;
    TileNumbers<2> numbers;
  };
  int blocks() const { return in.tiles().blocks(); }
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    with_pack<T>(in.channels, [&]<int kWidth>() { run<kWidth>(block, shared); });
  }

 private:
  template <int kWidth, class Block>
  RK_FN RK_INLINE void run(const Block& block, Shared<Block::kThreads>& shared) const {
    constexpr int kPart = TileNumbers<2>::template kPart<kWidth>;
    const ChannelTiles tiles = in.tiles();
    const int tile = tiles.row_tile(block.index());
    shared.numbers.template fill<kWidth>(block, tiles, {in.mean, in.mean_s});
    tile_sums<kWidth, 3>(
        block, tiles, shared.sums,
        [&](int channel, int first, int end, int step, auto& sums) {
          const std::int64_t origin = tiles.origin(tile, channel);
          const int column = channel - tiles.first_column(block.index());
          for_rows_together<BatchNormJoinBackward<T>::kRowsAtOnce>(
              first, end, step,
              [&](int row) { return in.template load<kWidth>(origin, row * in.channels); },
              [&]<int kRows>(int, auto& held) {
                RK_UNROLL
                for (int from = 0; from < kWidth; from += kPart) {
                  const auto mean = shared.numbers.template load<kWidth>(0, column + from);
                  const auto mean_s = shared.numbers.template load<kWidth>(1, column + from);
                  RK_UNROLL
                  for (int r = 0; r < kRows; ++r) {
                    RK_UNROLL
                    for (int p = 0; p < kPart; ++p) {
                      const int k = from + p;
                      const float g = held[r].gradient(k);
                      sums[0][k] += g;
                      sums[1][k] = std::fma(g, held[r].x[k] - mean[p], sums[1][k]);
                      sums[2][k] = std::fma(g, held[r].s[k] - mean_s[p], sums[2][k]);
                    }
                  }
                }
              });
        },
        [&](int channel, const double(&totals)[3]) {
          partial[tiles.partial(tile, 2, 0, channel)] = totals[0];
          partial[tiles.partial(tile, 2, 1, channel)] = totals[1];
          partial_s[tiles.partial(tile, 2, 0, channel)] = totals[0];
          partial_s[tiles.partial(tile, 2, 1, channel)] = totals[2];
        });
  }
};

// dx = a g + b + c (x - mean), and ds likewise from s. factors, factors_s: [3, channels] each, from
// BatchNormGradientFactors. dx or ds may be dy.
template <class T> struct BatchNormJoinGradientApply {
  BatchNormJoinBackward<T> in;
  const float* factors = nullptr;
  const float* factors_s = nullptr;
  T* dx = nullptr;
  T* ds = nullptr;

  static constexpr int kBlocksAtOnce = 4;
  template <int kThreads> using Shared = TileNumbers<8>;
  int blocks() const { return in.tiles().blocks(); }
  template <class Block> RK_FN void operator()(const Block& block, TileNumbers<8>& numbers) const {
    with_pack<T>(in.channels, [&]<int kWidth>() { run<kWidth>(LastBlockFirst(block), numbers); });
  }

 private:
  template <int kWidth, class Block>
  RK_FN RK_INLINE void run(const Block& block, TileNumbers<8>& numbers) const {
    constexpr int kPart = TileNumbers<8>::template kPart<kWidth>;
    const ChannelTiles tiles = in.tiles();
    numbers.template fill<kWidth>(
        block, tiles,
        {in.mean, factors, factors + in.channels, factors + 2 * in.channels, in.mean_s, factors_s,
         factors_s + in.channels, factors_s + 2 * in.channels});
    for_columns<kWidth>(block, tiles, [&](int channel, int first, int end, int step) {
      const std::int64_t origin = tiles.origin(tiles.row_tile(block.index()), channel);
      const int column = channel - tiles.first_column(block.index());
      const int both = first + last_row(first, end, step);
      for_rows_together<BatchNormJoinBackward<T>::kRowsAtOnce>(
          first, end, step,
          [&](int row) { return in.template load<kWidth>(origin, (both - row) * in.channels); },
          [&]<int kRows>(int row, auto& held) {
            RK_UNROLL
            for (int from = 0; from < kWidth; from += kPart) {
              const auto mean = numbers.template load<kWidth>(0, column + from);
              const auto a = numbers.template load<kWidth>(1, column + from);
              const auto b = numbers.template load<kWidth>(2, column + from);
              const auto c = numbers.template load<kWidth>(3, column + from);
              const auto mean_s = numbers.template load<kWidth>(4, column + from);
              const auto a_s = numbers.template load<kWidth>(5, column + from);
              const auto b_s = numbers.template load<kWidth>(6, column + from);
              const auto c_s = numbers.template load<kWidth>(7, column + from);
              RK_UNROLL
              for (int r = 0; r < kRows; ++r) {
                RK_UNROLL
                for (int p = 0; p < kPart; ++p) {
                  const int k = from + p;
                  const float g = held[r].gradient(k);
                  held[r].x.set(k, std::fma(a[p], g, std::fma(c[p], held[r].x[k] - mean[p], b[p])));
                  held[r].s.set(
                      k, std::fma(a_s[p], g, std::fma(c_s[p], held[r].s[k] - mean_s[p], b_s[p])));
                }
              }
            }
            RK_UNROLL
            for (int r = 0; r < kRows; ++r) {
              const std::int64_t at = origin + (both - row - r * step) * in.channels;
              store_pack(dx + at, held[r].x);
              store_pack(ds + at, held[r].s);
            }
          });
    });
  }
};

}  // namespace rk
