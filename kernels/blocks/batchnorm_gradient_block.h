// Batch normalisation backward on a GPU (forward: batchnorm_block.h), over (rows, channels), NHWC:
//
//   g = dy where ReLU passed the value, else 0;  S = sum g,  P = sum g (x - mean),  M = rows
//   dbeta = S,  dgamma = inv_std P,
//   dx = scale (g - S / M - (x - mean) inv_std^2 P / M)   batch statistics
//   dx = scale g                                          running statistics
//
// in three kernels: BatchNormGradientSums, BatchNormGradientFactors, BatchNormGradientApply. dgamma
// and dbeta are overwritten, gradients of tensors overwritten or accumulated. Definitions are those
// of layers/batchnorm.cpp.
//
// Both passes over rows are compiled for every mask and every way to write, which saves registers:
// these limit how many threads can wait for memory at once.
//
// Bytes moved, e = sizeof(T) rows channels: Sums 2e, e more to write d_residual and e to read it
// when accumulating; Apply 3e, e more when accumulating; signs are one bit per 16-bit element.
#pragma once

#include "kernels/blocks/batchnorm_block.h"

#include <cmath>
#include <cstdint>

namespace rk {

// What a kernel does to the memory of a tensor's gradient.
enum class GradientWrite : std::uint8_t { kNone, kOverwrite, kAdd };

// The inputs of both passes. x, dy, mean: always read. scale, beta: kFromInput. signs: kFromSigns.
template <class T> struct BatchNormBackward {
  std::int64_t rows = 0;
  int channels = 0;
  const T* x = nullptr;
  const T* dy = nullptr;
  const std::uint8_t* signs = nullptr;
  const float* mean = nullptr;
  const float* scale = nullptr;
  const float* beta = nullptr;

  RK_BOTH ChannelTiles tiles() const { return {rows, channels}; }

  template <int kWidth> struct Row {
    Pack<T, kWidth> x;
    Pack<T, kWidth> dy;
    Pack<T, kWidth> added;  // the gradient so far, for kAdd
    unsigned bits;
  };
  // Loads the pack at element origin + at. added_to is read for kAdd only.
  template <int kWidth, ReluMask kMask, GradientWrite kWrite>
  RK_FN RK_INLINE Row<kWidth> load(std::int64_t origin, int at, const T* added_to) const {
    Row<kWidth> row{};
    row.x = load_pack<kWidth>(x + origin + at);
    row.dy = load_pack<kWidth>(dy + origin + at);
    if constexpr (kMask == ReluMask::kFromSigns) row.bits = sign_of<kWidth>(signs, origin, at);
    if constexpr (kWrite == GradientWrite::kAdd) {
      row.added = load_pack<kWidth>(added_to + origin + at);
    }
    return row;
  }

  // For kFromSigns, turns dy of `rows` into g.
  template <ReluMask kMask, int kWidth, std::size_t kRows>
  RK_FN RK_INLINE static void mask_by_signs(Row<kWidth> (&rows)[kRows]) {
    if constexpr (kMask == ReluMask::kFromSigns) {
      RK_UNROLL
      for (Row<kWidth>& row : rows) {
        RK_UNROLL
        for (int k = 0; k < kWidth; ++k) {
          if ((row.bits >> k & 1U) == 0) row.dy.values[k] = Element<T>::narrow(0.0F);
        }
      }
    }
  }
};

// partial: double [row_tiles, 2, channels], sums of g and of g (x - mean). As kResidual says, g is
// written or added to d_residual, which may be dy itself. A ReLU after a residual addition has its
// signs stored, so there is no kFromInput with a residual.
template <class T, ReluMask kMask, GradientWrite kResidual> struct BatchNormGradientSums {
  static_assert(kMask != ReluMask::kFromInput || kResidual == GradientWrite::kNone);

  BatchNormBackward<T> in;
  T* d_residual = nullptr;
  double* partial = nullptr;

  static constexpr int kBlocksAtOnce = kResidual == GradientWrite::kAdd ? kBlocksThatAdd : 4;
  static constexpr int kNumbers = kMask == ReluMask::kFromInput ? 3 : 1;
  template <int kThreads> struct Shared {
    TileSumsMemory<T, 2, kThreads> sums;
    TileNumbers<kNumbers> numbers;
  };
  int blocks() const { return in.tiles().blocks(); }
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    with_pack<T>(in.channels, [&]<int kWidth>() { run<kWidth>(block, shared); });
  }

 private:
  template <int kWidth, class Block>
  RK_FN RK_INLINE void run(const Block& block, Shared<Block::kThreads>& shared) const {
    constexpr int kPart = TileNumbers<kNumbers>::template kPart<kWidth>;
    const ChannelTiles tiles = in.tiles();
    const int tile = tiles.row_tile(block.index());
    if constexpr (kMask == ReluMask::kFromInput) {
      shared.numbers.template fill<kWidth>(block, tiles, {in.mean, in.scale, in.beta});
    } else {
      shared.numbers.template fill<kWidth>(block, tiles, {in.mean});
    }
    tile_sums<kWidth, 2>(
        block, tiles, shared.sums,
        [&](int channel, int first, int end, int step, auto& sums) {
          const std::int64_t origin = tiles.origin(tile, channel);
          const int column = channel - tiles.first_column(block.index());
          for_rows_together<2>(
              first, end, step,
              [&](int row) {
                return in.template load<kWidth, kMask, kResidual>(origin, row * in.channels,
                                                                  d_residual);
              },
              [&]<int kRows>(int row, auto& held) {
                in.template mask_by_signs<kMask>(held);
                if constexpr (kResidual == GradientWrite::kOverwrite) {
                  RK_UNROLL
                  for (int r = 0; r < kRows; ++r) {
                    store_pack(d_residual + origin + (row + r * step) * in.channels, held[r].dy);
                  }
                }
                RK_UNROLL
                for (int from = 0; from < kWidth; from += kPart) {
                  const auto mean = shared.numbers.template load<kWidth>(0, column + from);
                  [[maybe_unused]] Pack<float, kPart> scale{}, beta{};
                  if constexpr (kMask == ReluMask::kFromInput) {
                    scale = shared.numbers.template load<kWidth>(1, column + from);
                    beta = shared.numbers.template load<kWidth>(2, column + from);
                  }
                  RK_UNROLL
                  for (int r = 0; r < kRows; ++r) {
                    RK_UNROLL
                    for (int p = 0; p < kPart; ++p) {
                      const int k = from + p;
                      const float centred = held[r].x[k] - mean[p];
                      float g = held[r].dy[k];
                      if constexpr (kMask == ReluMask::kFromInput) {
                        g = std::fma(centred, scale[p], beta[p]) > 0 ? g : 0.0F;
                      }
                      sums[0][k] += g;
                      sums[1][k] = std::fma(g, centred, sums[1][k]);
                      if constexpr (kResidual == GradientWrite::kAdd) {
                        held[r].dy.set(k, held[r].added[k] + g);
                      }
                    }
                  }
                }
                if constexpr (kResidual == GradientWrite::kAdd) {
                  RK_UNROLL
                  for (int r = 0; r < kRows; ++r) {
                    store_pack(d_residual + origin + (row + r * step) * in.channels, held[r].dy);
                  }
                }
              });
        },
        [&](int channel, const double(&totals)[2]) {
          partial[tiles.partial(tile, 2, 0, channel)] = totals[0];
          partial[tiles.partial(tile, 2, 1, channel)] = totals[1];
        });
  }
};

// Calls f.operator()<kMask, kResidual>() with the given mask and way to write.
template <class F> void with_gradient_sums(ReluMask mask, GradientWrite residual, F&& f) {
  const auto with = [&]<ReluMask kMask>() {
    switch (residual) {
      case GradientWrite::kNone: f.template operator()<kMask, GradientWrite::kNone>(); break;
      case GradientWrite::kOverwrite:
        f.template operator()<kMask, GradientWrite::kOverwrite>();
        break;
      case GradientWrite::kAdd: f.template operator()<kMask, GradientWrite::kAdd>(); break;
    }
  };
  switch (mask) {
    case ReluMask::kNone: with.template operator()<ReluMask::kNone>(); break;
    case ReluMask::kFromSigns: with.template operator()<ReluMask::kFromSigns>(); break;
    case ReluMask::kFromInput:
      f.template operator()<ReluMask::kFromInput, GradientWrite::kNone>();
      break;
  }
}

// Per channel, float: dgamma, dbeta, and a, b, c of the second pass.
struct BatchNormGradientFactors {
  std::int64_t rows = 0;
  int channels = 0;
  bool batch_statistics = true;
  const double* partial = nullptr;  // of BatchNormGradientSums
  const float* inv_std = nullptr;
  const float* scale = nullptr;
  float* d_gamma = nullptr;
  float* d_beta = nullptr;
  float* factors = nullptr;  // [3, channels]

  static constexpr int kBlocksAtOnce = 4;
  template <int kThreads> using Shared = FinishMemory<2, kThreads>;
  int blocks() const { return finishing_blocks(channels); }
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    const ChannelTiles tiles{rows, channels};
    const auto count = static_cast<double>(rows);
    finish_tiles<2>(
        block, tiles.row_tiles(), channels, shared,
        [&](int tile, int channel, double(&sums)[2]) {
          sums[0] += partial[tiles.partial(tile, 2, 0, channel)];
          sums[1] += partial[tiles.partial(tile, 2, 1, channel)];
        },
        [&](int channel, const double(&totals)[2]) {
          const BatchNormFactors of = batchnorm_factors(totals[0], totals[1], inv_std[channel],
                                                        scale[channel], count, batch_statistics);
          d_gamma[channel] = of.d_gamma;
          d_beta[channel] = of.d_beta;
          factors[channel] = of.a;
          factors[channels + channel] = of.b;
          factors[2 * channels + channel] = of.c;
        });
  }
};

// dx = a g + b + c (x - mean), or added to dx; dx may be dy. If the first pass wrote g to
// d_residual, d_residual may serve as dy with no mask.
template <class T, ReluMask kMask, GradientWrite kWrite> struct BatchNormGradientApply {
  static_assert(kWrite != GradientWrite::kNone);

  BatchNormBackward<T> in;
  const float* factors = nullptr;  // [3, channels]
  T* dx = nullptr;

  static constexpr int kBlocksAtOnce = 4;
  static constexpr int kNumbers = kMask == ReluMask::kFromInput ? 5 : 4;
  template <int kThreads> using Shared = TileNumbers<kNumbers>;
  int blocks() const { return in.tiles().blocks(); }
  template <class Block>
  RK_FN void operator()(const Block& block, TileNumbers<kNumbers>& shared) const {
    with_pack<T>(in.channels, [&]<int kWidth>() { run<kWidth>(LastBlockFirst(block), shared); });
  }

 private:
  template <int kWidth, class Block>
  RK_FN RK_INLINE void run(const Block& block, TileNumbers<kNumbers>& shared) const {
    constexpr int kPart = TileNumbers<kNumbers>::template kPart<kWidth>;
    const ChannelTiles tiles = in.tiles();
    const float* a_of = factors;  // the scale of the forward pass, too
    const float* b_of = factors + in.channels;
    const float* c_of = factors + 2 * in.channels;
    if constexpr (kMask == ReluMask::kFromInput) {
      shared.template fill<kWidth>(block, tiles, {in.mean, a_of, b_of, c_of, in.beta});
    } else {
      shared.template fill<kWidth>(block, tiles, {in.mean, a_of, b_of, c_of});
    }
    for_columns<kWidth>(block, tiles, [&](int channel, int first, int end, int step) {
      const std::int64_t origin = tiles.origin(tiles.row_tile(block.index()), channel);
      const int column = channel - tiles.first_column(block.index());
      const int both = first + last_row(first, end, step);
      for_rows_together<2>(
          first, end, step,
          [&](int row) {
            return in.template load<kWidth, kMask, kWrite>(origin, (both - row) * in.channels, dx);
          },
          [&]<int kRows>(int row, auto& held) {
            in.template mask_by_signs<kMask>(held);
            Pack<T, kWidth> out[kBound<kRows>];
            RK_UNROLL
            for (int from = 0; from < kWidth; from += kPart) {
              const auto mean = shared.template load<kWidth>(0, column + from);
              const auto a = shared.template load<kWidth>(1, column + from);
              const auto b = shared.template load<kWidth>(2, column + from);
              const auto c = shared.template load<kWidth>(3, column + from);
              [[maybe_unused]] Pack<float, kPart> beta{};
              if constexpr (kMask == ReluMask::kFromInput) {
                beta = shared.template load<kWidth>(4, column + from);
              }
              RK_UNROLL
              for (int r = 0; r < kRows; ++r) {
                RK_UNROLL
                for (int p = 0; p < kPart; ++p) {
                  const int k = from + p;
                  const float centred = held[r].x[k] - mean[p];
                  float g = held[r].dy[k];
                  if constexpr (kMask == ReluMask::kFromInput) {
                    g = std::fma(centred, a[p], beta[p]) > 0 ? g : 0.0F;
                  }
                  float value = std::fma(a[p], g, std::fma(c[p], centred, b[p]));
                  if constexpr (kWrite == GradientWrite::kAdd) value += held[r].added[k];
                  out[r].set(k, value);
                }
              }
            }
            RK_UNROLL
            for (int r = 0; r < kRows; ++r) {
              store_pack(dx + origin + (both - row - r * step) * in.channels, out[r]);
            }
          });
    });
  }
};

// Calls f.operator()<kMask, kWrite>() with the given mask and kAdd or kOverwrite.
template <class F> void with_gradient_apply(ReluMask mask, bool accumulate, F&& f) {
  const auto with = [&]<GradientWrite kWrite>() {
    switch (mask) {
      case ReluMask::kNone: f.template operator()<ReluMask::kNone, kWrite>(); break;
      case ReluMask::kFromInput: f.template operator()<ReluMask::kFromInput, kWrite>(); break;
      case ReluMask::kFromSigns: f.template operator()<ReluMask::kFromSigns, kWrite>(); break;
    }
  };
  if (accumulate) {
    with.template operator()<GradientWrite::kAdd>();
  } else {
    with.template operator()<GradientWrite::kOverwrite>();
  }
}

}  // namespace rk
