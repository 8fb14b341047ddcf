// Batch normalisation backward on a GPU (forward: batchnorm_block.h), over (rows, channels), NHWC:
//
//   g = dz where ReLU let the value through,  S = sum g,  P = sum g (y - mean),  M = rows
//   dbeta = S,  dgamma = inv_std P,
//   dy = scale (g - S / M - (y - mean) inv_std^2 P / M)   batch statistics
//   dy = scale g                                          running statistics
//
// in three kernels: BatchNormGradientSums, BatchNormGradientFactors, BatchNormGradientApply. dgamma
// and dbeta are overwritten, gradients of tensors overwritten or added to. Definitions are
// layers/batchnorm.cpp's.
//
// Bytes moved, e = sizeof(T) rows channels: Sums 2e, e more for kFromOutput, to write d_residual
// and to read it for a sum; Apply 3e, e more for kFromOutput and for a sum; signs are a bit an
// element of 16 bits.
#pragma once

#include "kernels/batchnorm_block.h"

#include <cmath>
#include <cstdint>

namespace rk {

// How backward finds where ReLU let the value through: it did everywhere, where y normalised again
// is positive, where the sign is set, where the output z is positive.
enum class ReluMask : std::uint8_t { kNone, kFromInput, kFromSigns, kFromOutput };

// What both passes read. y, mean: always. scale, beta: kFromInput. signs, z: where the mask asks.
template <class T> struct BatchNormBackward {
  std::int64_t rows = 0;
  int channels = 0;
  const T* y = nullptr;
  const T* dz = nullptr;
  ReluMask mask = ReluMask::kNone;
  const std::uint8_t* signs = nullptr;
  const T* z = nullptr;
  const float* mean = nullptr;
  const float* scale = nullptr;
  const float* beta = nullptr;

  RK_BOTH ChannelTiles tiles() const { return {rows, channels}; }

  template <int kWidth> struct Row {
    Pack<T, kWidth> y;
    Pack<T, kWidth> dz;
    Pack<T, kWidth> z;
    Pack<T, kWidth> added;  // what is there, where a gradient is added to
    unsigned bits;
  };
  template <int kWidth, bool kFromInput>
  RK_FN RK_INLINE Row<kWidth> load(std::int64_t at, const T* added_to) const {
    Row<kWidth> row{};
    row.y = load_pack<kWidth>(y + at);
    row.dz = load_pack<kWidth>(dz + at);
    if constexpr (!kFromInput) {
      if (mask == ReluMask::kFromOutput) row.z = load_pack<kWidth>(z + at);
      if (mask == ReluMask::kFromSigns) row.bits = signs[at / kWidth];
    }
    if (added_to != nullptr) row.added = load_pack<kWidth>(added_to + at);
    return row;
  }

  // Calls f.operator()<W, kFromInput>(): kFromInput holds two numbers more a channel, the others
  // hold more of a row, and registers are what limits how many threads wait for memory side by
  // side.
  template <class F> RK_FN RK_INLINE void with_pack_and_mask(F&& f) const {
    with_pack<T>(channels, [&]<int kWidth>() {
      if (mask == ReluMask::kFromInput) {
        f.template operator()<kWidth, true>();
      } else {
        f.template operator()<kWidth, false>();
      }
    });
  }

  // Of a thread's channels.
  template <int kWidth, bool kFromInput> struct Factors {
    Pack<float, kWidth> mean;
    static constexpr int kOwn = std::max(1, static_cast<int>(kFromInput) * kWidth);
    Pack<float, kOwn> scale;
    Pack<float, kOwn> beta;
  };
  template <int kWidth, bool kFromInput>
  RK_FN RK_INLINE Factors<kWidth, kFromInput> factors(int channel) const {
    Factors<kWidth, kFromInput> held{};
    held.mean = load_pack<kWidth>(mean + channel);
    if constexpr (kFromInput) {
      held.scale = load_pack<kWidth>(scale + channel);
      held.beta = load_pack<kWidth>(beta + channel);
    }
    return held;
  }

  // g and y - mean of element k.
  struct Masked {
    float g;
    float centred;
  };
  template <int kWidth, bool kFromInput>
  RK_FN RK_INLINE Masked masked(const Row<kWidth>& row, const Factors<kWidth, kFromInput>& of,
                                int k) const {
    const float centred = row.y[k] - of.mean[k];
    bool through = true;
    if constexpr (kFromInput) {
      through = std::fma(centred, of.scale[k], of.beta[k]) > 0;
    } else {
      if (mask == ReluMask::kFromSigns) through = (row.bits >> k & 1U) != 0;
      if (mask == ReluMask::kFromOutput) through = row.z[k] > 0;
    }
    return {through ? row.dz[k] : 0.0F, centred};
  }
};

// partial: double [row_tiles, 2, channels], sums of g and of g (y - mean). d_residual, if wanted,
// gets (or adds, if accumulate) g; it may be dz itself.
template <class T> struct BatchNormGradientSums {
  BatchNormBackward<T> in;
  T* d_residual = nullptr;
  bool accumulate = false;
  double* partial = nullptr;

  template <int kThreads> using Shared = TileSumsMemory<T, 2, kThreads>;
  int blocks() const { return in.tiles().blocks(); }
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    in.with_pack_and_mask(
        [&]<int kWidth, bool kFromInput>() { run<kWidth, kFromInput>(block, shared); });
  }

 private:
  template <int kWidth, bool kFromInput, class Block>
  RK_FN RK_INLINE void run(const Block& block, Shared<Block::kThreads>& shared) const {
    using Row = typename BatchNormBackward<T>::template Row<kWidth>;
    const ChannelTiles tiles = in.tiles();
    const int tile = tiles.row_tile(block.index());
    tile_sums<kWidth, 2>(
        block, tiles, shared,
        [&](int channel, std::int64_t first, std::int64_t end, int step, auto& sums) {
          const auto factors = in.template factors<kWidth, kFromInput>(channel);
          for_rows<1>(
              first, end, step,
              [&](std::int64_t row) {
                return in.template load<kWidth, kFromInput>(row * in.channels + channel,
                                                            accumulate ? d_residual : nullptr);
              },
              [&](std::int64_t row, const Row& held) {
                Pack<T, kWidth> out;
                RK_UNROLL
                for (int k = 0; k < kWidth; ++k) {
                  const auto [g, centred] = in.masked(held, factors, k);
                  sums[0][k] += g;
                  sums[1][k] = std::fma(g, centred, sums[1][k]);
                  out.set(k, accumulate ? held.added[k] + g : g);
                }
                if (d_residual != nullptr)
                  store_pack(d_residual + row * in.channels + channel, out);
              });
        },
        [&](int channel, const double(&totals)[2]) {
          partial[tiles.partial(tile, 2, 0, channel)] = totals[0];
          partial[tiles.partial(tile, 2, 1, channel)] = totals[1];
        });
  }
};

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
          const auto inverse = static_cast<double>(inv_std[channel]);
          const auto factor = static_cast<double>(scale[channel]);
          const double sum = totals[0];
          const double product = totals[1];
          d_gamma[channel] = static_cast<float>(inverse * product);
          d_beta[channel] = static_cast<float>(sum);
          factors[channel] = scale[channel];
          factors[channels + channel] =
              batch_statistics ? static_cast<float>(-factor * sum / count) : 0.0F;
          factors[2 * channels + channel] =
              batch_statistics ? static_cast<float>(-factor * inverse * inverse * product / count)
                               : 0.0F;
        });
  }
};

// dy = a g + b + c (y - mean), or added to dy; dy may be dz. Where the first pass wrote g to
// d_residual, that may serve as dz with no mask.
template <class T> struct BatchNormGradientApply {
  BatchNormBackward<T> in;
  const float* factors = nullptr;  // [3, channels]
  T* dy = nullptr;
  bool accumulate = false;

  int blocks() const { return in.tiles().blocks(); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    in.with_pack_and_mask([&]<int kWidth, bool kFromInput>() { run<kWidth, kFromInput>(block); });
  }

 private:
  template <int kWidth, bool kFromInput, class Block>
  RK_FN RK_INLINE void run(const Block& block) const {
    using Row = typename BatchNormBackward<T>::template Row<kWidth>;
    for_columns<kWidth>(
        block, in.tiles(), [&](int channel, std::int64_t first, std::int64_t end, int step) {
          const auto of = in.template factors<kWidth, kFromInput>(channel);
          const auto a = load_pack<kWidth>(factors + channel);
          const auto b = load_pack<kWidth>(factors + in.channels + channel);
          const auto c = load_pack<kWidth>(factors + 2 * in.channels + channel);
          for_rows_back<1>(
              first, end, step,
              [&](std::int64_t row) {
                return in.template load<kWidth, kFromInput>(row * in.channels + channel,
                                                            accumulate ? dy : nullptr);
              },
              [&](std::int64_t row, const Row& held) {
                Pack<T, kWidth> out;
                RK_UNROLL
                for (int k = 0; k < kWidth; ++k) {
                  const auto [g, centred] = in.masked(held, of, k);
                  const float value = std::fma(a[k], g, std::fma(c[k], centred, b[k]));
                  out.set(k, accumulate ? value + held.added[k] : value);
                }
                store_pack(dy + row * in.channels + channel, out);
              });
        });
  }
};

}  // namespace rk
