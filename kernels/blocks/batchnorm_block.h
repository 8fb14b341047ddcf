// Batch normalisation forward on a GPU, over x (rows, channels): rows = N H W, NHWC.
//
//   y = relu?( fma(x - mean, scale, beta)  [+ residual] )      scale = gamma inv_std
//
//   batch statistics                          BatchNormSums, BatchNormStatistics, BatchNormApply
//   batch statistics, sums from convolution   BatchNormStatisticsOfSums, BatchNormApply
//   running statistics                        BatchNormRunning, BatchNormApply
//
// Definitions and roundings are those of layers/batchnorm.cpp. The sums over a tile of rows
// (channel_tiles.h) are of x minus the tile's first row, so data far from zero keeps its digits; a
// tile yields its mean and its sum of squared deviations, and tiles are combined in double.
//
// Bytes moved, e = sizeof(T) rows channels: Sums e; Apply 2e, 3e with a residual, and one bit per
// 16-bit element for signs; the others a few numbers per channel and tile.
#pragma once

#include "kernels/blocks/batchnorm_channel.h"
#include "kernels/blocks/channel_tiles.h"

#include <cstdint>

namespace rk {

// Bytes for the signs of a ReLU after a residual addition: one byte per pack of elements, bit k for
// the pack's element k.
template <class T> std::int64_t sign_bytes(std::int64_t rows, int channels) {
  return rows * channels / (channels % kPack<T> == 0 ? kPack<T> : 1);
}

// The signs of the pack of kWidth elements that begins at element origin + at.
template <int kWidth, class Byte>
RK_FN RK_INLINE Byte& sign_of(Byte* signs, std::int64_t origin, int at) {
  return (signs + origin / kWidth)[static_cast<unsigned>(at) / kWidth];
}

// partial: double [row_tiles, 2, channels], ChannelTiles(rows, channels).partials(2) of them: mean
// and sum of squared deviations of each tile.
template <class T> struct BatchNormSums {
  std::int64_t rows = 0;
  int channels = 0;
  const T* x = nullptr;
  double* partial = nullptr;

  static constexpr int kBlocksAtOnce = 4;
  template <int kThreads> using Shared = TileSumsMemory<T, 2, kThreads>;
  RK_BOTH ChannelTiles tiles() const { return {rows, channels}; }
  int blocks() const { return tiles().blocks(); }
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    with_pack<T>(channels, [&]<int kWidth>() { run<kWidth>(block, shared); });
  }

 private:
  template <int kWidth, class Block>
  RK_FN RK_INLINE void run(const Block& block, Shared<Block::kThreads>& shared) const {
    const ChannelTiles all = tiles();
    const int tile = all.row_tile(block.index());
    tile_sums<kWidth, 2>(
        block, all, shared,
        [&](int channel, int first, int end, int step, auto& sums) {
          const T* from = x + all.origin(tile, channel);
          const auto shift = load_pack<kWidth>(from);
          for_rows<4>(
              first, end, step, [&](int row) { return load_pack<kWidth>(from + row * channels); },
              [&](int, const Pack<T, kWidth>& values) {
                RK_UNROLL
                for (int k = 0; k < kWidth; ++k) {
                  const float d = values[k] - shift[k];
                  sums[0][k] += d;
                  sums[1][k] = std::fma(d, d, sums[1][k]);
                }
              });
        },
        [&](int channel, const double(&totals)[2]) {
          const auto count = static_cast<double>(all.rows_of(tile));
          const auto shift = static_cast<double>(Element<T>::widen(x[all.origin(tile, channel)]));
          partial[all.partial(tile, 2, 0, channel)] = shift + totals[0] / count;
          partial[all.partial(tile, 2, 1, channel)] = totals[1] - totals[0] * totals[0] / count;
        });
  }
};

// Per channel, float: mean, inv_std and scale of the batch, and the updated running statistics:
// running = (1 - momentum) running + momentum batch, where the batch variance divides by n - 1.
struct BatchNormStatisticsOut {
  const float* gamma = nullptr;
  double epsilon = 1e-5;
  double momentum = 0.1;
  float* running_mean = nullptr;
  float* running_variance = nullptr;
  float* mean = nullptr;
  float* inv_std = nullptr;
  float* scale = nullptr;

  // squares: sum of the squared deviations of `count` values from `centre`.
  RK_FN RK_INLINE void write(int c, double count, double centre, double squares) const {
    mean[c] = static_cast<float>(centre);
    const float variance = biased_variance(squares, count);
    const RunningUpdate update{count, momentum};
    running_mean[c] = update.mean(running_mean[c], mean[c]);
    running_variance[c] = update.variance(running_variance[c], variance);
    const double inverse = inverse_deviation(variance, epsilon);
    inv_std[c] = static_cast<float>(inverse);
    scale[c] = static_cast<float>(static_cast<double>(gamma[c]) * inverse);
  }
};

struct BatchNormStatistics {
  std::int64_t rows = 0;
  int channels = 0;
  const double* partial = nullptr;  // of BatchNormSums
  BatchNormStatisticsOut out;

  template <int kThreads> using Shared = FinishMemory<2, kThreads>;
  int blocks() const { return finishing_blocks(channels); }
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    const ChannelTiles tiles{rows, channels};
    const auto count = static_cast<double>(rows);
    const std::int64_t tile_rows = tiles.tile_rows();
    finish_tiles<2>(
        block, tiles.row_tiles(), channels, shared,
        [&](int tile, int channel, double(&sums)[2]) {
          // Relative to the first tile: tiles of one image differ little.
          const double shift = partial[tiles.partial(0, 2, 0, channel)];
          const double d = partial[tiles.partial(tile, 2, 0, channel)] - shift;
          const auto held = static_cast<double>(std::min(tile_rows, rows - tile * tile_rows));
          sums[0] += held * d;
          sums[1] += partial[tiles.partial(tile, 2, 1, channel)] + held * d * d;
        },
        [&](int c, const double(&totals)[2]) {
          const double moved = totals[0] / count;
          out.write(c, count, partial[tiles.partial(0, 2, 0, c)] + moved,
                    totals[1] - moved * totals[0]);
        });
  }
};

// The same from a channel's sum and sum of squares in float32, which a convolution computes
// alongside. Loses digits if a channel's mean is large compared with its deviation.
struct BatchNormStatisticsOfSums {
  static constexpr int kChannels = 256;  // of a block

  std::int64_t rows = 0;
  int channels = 0;
  const float* sum = nullptr;
  const float* squares = nullptr;
  BatchNormStatisticsOut out;

  int blocks() const { return divide_up(channels, kChannels); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const auto count = static_cast<double>(rows);
    const int end = std::min(channels, (block.index() + 1) * kChannels);
    for (int c = block.index() * kChannels + block.thread(); c < end; c += Block::kThreads) {
      const double total = static_cast<double>(sum[c]), centre = total / count;
      out.write(c, count, centre, static_cast<double>(squares[c]) - total * centre);
    }
  }
};

// The same from running statistics, which stay unchanged.
struct BatchNormRunning {
  static constexpr int kChannels = 256;  // of a block

  int channels = 0;
  const float* gamma = nullptr;
  double epsilon = 1e-5;
  const float* running_mean = nullptr;
  const float* running_variance = nullptr;
  float* mean = nullptr;
  float* inv_std = nullptr;
  float* scale = nullptr;

  int blocks() const { return divide_up(channels, kChannels); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const int end = std::min(channels, (block.index() + 1) * kChannels);
    for (int c = block.index() * kChannels + block.thread(); c < end; c += Block::kThreads) {
      const double inverse = inverse_deviation(running_variance[c], epsilon);
      mean[c] = running_mean[c];
      inv_std[c] = static_cast<float>(inverse);
      scale[c] = static_cast<float>(static_cast<double>(gamma[c]) * inverse);
    }
  }
};

// signs [sign_bytes<T>(rows, channels)] is written for relu with a residual, unless null. residual
// is read only if kResidual. y may be x or the residual.
template <class T, bool kResidual> struct BatchNormApply {
  std::int64_t rows = 0;
  int channels = 0;
  const T* x = nullptr;
  const float* mean = nullptr;
  const float* scale = nullptr;
  const float* beta = nullptr;
  const T* residual = nullptr;
  bool relu = false;
  std::uint8_t* signs = nullptr;
  T* y = nullptr;

  static constexpr int kBlocksAtOnce = 4;
  RK_BOTH ChannelTiles tiles() const { return {rows, channels}; }
  int blocks() const { return tiles().blocks(); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    with_pack<T>(channels, [&]<int kWidth>() { run<kWidth>(LastBlockFirst(block)); });
  }

 private:
  template <int kWidth> struct Row {
    Pack<T, kWidth> x;
    Pack<T, kWidth> residual;
  };

  template <int kWidth, class Block> RK_FN RK_INLINE void run(const Block& block) const {
    for_columns<kWidth>(block, tiles(), [&](int channel, int first, int end, int step) {
      const auto centre = load_pack<kWidth>(mean + channel);
      const auto factor = load_pack<kWidth>(scale + channel);
      const auto shift = load_pack<kWidth>(beta + channel);
      const std::int64_t origin = tiles().origin(tiles().row_tile(block.index()), channel);
      for_rows_back<2>(
          first, end, step,
          [&](int row) {
            const int at = row * channels;
            Row<kWidth> held{};
            held.x = load_pack<kWidth>(x + origin + at);
            if constexpr (kResidual) held.residual = load_pack<kWidth>(residual + origin + at);
            return held;
          },
          [&](int row, const Row<kWidth>& held) {
            const int at = row * channels;
            Pack<T, kWidth> out;
            unsigned bits = 0;
            RK_UNROLL
            for (int k = 0; k < kWidth; ++k) {
              float value = std::fma(held.x[k] - centre[k], factor[k], shift[k]);
              if constexpr (kResidual) value += held.residual[k];
              if (relu) {
                bits |= value > 0 ? 1U << k : 0U;
                value = rectified(value);
              }
              out.set(k, value);
            }
            store_pack(y + origin + at, out);
            if (kResidual && relu && signs != nullptr) {
              sign_of<kWidth>(signs, origin, at) = static_cast<std::uint8_t>(bits);
            }
          });
    });
  }
};

}  // namespace rk
