// The backward pass after a convolution with its batch normalisation folded in (layers/conv_bn.h),
// on a GPU; PrepareWeights (weights_block.h) does the folding.
//
//   MaskedSums       g = dy where z > 0, and sum g per channel
//   FoldedGradients  dW = scale dW',  dbeta = sum g,  dgamma = inv_std (<dW', W> - mean dbeta)
//
// W is float [outputs, taps, inputs], W' and dW' are T, stored as FilterShape says. Parameters'
// gradients are overwritten, and stay multiplied by the loss scale if dy was.
//
// Bytes moved, n = outputs taps inputs: FoldedGradients (8 + sizeof(T)) n; MaskedSums, e =
// sizeof(T) rows channels: e, and e more for each of: reading z, writing g, writing d_residual,
// reading d_residual to accumulate.
#pragma once

#include "kernels/block_team.h"
#include "kernels/blocks/channel_tiles.h"
#include "kernels/blocks/weights_block.h"

#include <cstdint>

namespace rk {

// Rows are row_stride >= channels elements apart, except in partial, double [row_tiles, 1,
// channels]. z may be null: then dy is the masked gradient already. gradient, unless null, gets g,
// and may be dy; g is written to d_residual, unless null, or added if accumulate.
template <class T> struct MaskedSums {
  std::int64_t rows = 0;
  int channels = 0;
  int row_stride = 0;
  const T* dy = nullptr;
  const T* z = nullptr;
  T* gradient = nullptr;
  T* d_residual = nullptr;
  bool accumulate = false;
  double* partial = nullptr;

  static constexpr int kBlocksAtOnce = kBlocksThatAdd;
  template <int kThreads> using Shared = TileSumsMemory<T, 1, kThreads>;
  RK_BOTH ChannelTiles tiles() const { return {rows, channels}; }
  int blocks() const { return tiles().blocks(); }
  // A body of its own for each case: asked element by element, whether there is a z costs more
  // instructions than the sums, and half of the registers' bytes are moved about.
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    with_pack<T>(channels | row_stride, [&]<int kWidth>() {
      const bool adds = accumulate && d_residual != nullptr;
      if (z != nullptr && adds) return run<kWidth, true, true>(block, shared);
      if (z != nullptr) return run<kWidth, true, false>(block, shared);
      if (adds) return run<kWidth, false, true>(block, shared);
      run<kWidth, false, false>(block, shared);
    });
  }

 private:
  template <int kWidth> struct Row {
    Pack<T, kWidth> dy;
    Pack<T, kWidth> z;
    Pack<T, kWidth> added;
  };

  template <int kWidth, bool kMasks, bool kAdds, class Block>
  RK_FN RK_INLINE void run(const Block& block, Shared<Block::kThreads>& shared) const {
    constexpr int kInFlight = kMasks || kAdds ? 2 : 4;  // rows loaded before the first is used
    const ChannelTiles all = tiles();
    const int tile = all.row_tile(block.index());
    tile_sums<kWidth, 1>(
        block, all, shared,
        [&](int channel, int first, int end, int step, auto& sums) {
          const std::int64_t origin = all.first_row(tile) * row_stride + channel;
          for_rows<kInFlight>(
              first, end, step,
              [&](int row) {
                const std::int64_t at = origin + static_cast<std::int64_t>(row * row_stride);
                Row<kWidth> held{};
                held.dy = load_pack<kWidth>(dy + at);
                if constexpr (kMasks) held.z = load_pack<kWidth>(z + at);
                if constexpr (kAdds) held.added = load_pack<kWidth>(d_residual + at);
                return held;
              },
              [&](int row, const Row<kWidth>& held) {
                const std::int64_t at = origin + static_cast<std::int64_t>(row * row_stride);
                float g[kBound<kWidth>];
                RK_UNROLL
                for (int k = 0; k < kWidth; ++k) {
                  g[k] = !kMasks || held.z[k] > 0 ? held.dy[k] : 0.0F;
                  sums[0][k] += g[k];
                }
                if (gradient != nullptr || (!kAdds && d_residual != nullptr)) {
                  Pack<T, kWidth> masked;
                  RK_UNROLL
                  for (int k = 0; k < kWidth; ++k) masked.set(k, g[k]);
                  if (gradient != nullptr) store_pack(gradient + at, masked);
                  if (!kAdds && d_residual != nullptr) store_pack(d_residual + at, masked);
                }
                if constexpr (kAdds) {
                  Pack<T, kWidth> residual;
                  RK_UNROLL
                  for (int k = 0; k < kWidth; ++k) residual.set(k, held.added[k] + g[k]);
                  store_pack(d_residual + at, residual);
                }
              });
        },
        [&](int channel, const double(&totals)[1]) {
          partial[all.partial(tile, 1, 0, channel)] = totals[0];
        });
  }
};

// The inputs and outputs of a folded convolution's gradients.
template <class T> struct FoldedGradient {
  FilterShape shape;
  std::int64_t rows = 0;
  double* partial = nullptr;  // of MaskedSums over rows x outputs, read if `sum` is null
  T* d_folded = nullptr;      // [outputs, stored_each]
  const float* weight = nullptr;
  const float* scale = nullptr;    // of PrepareWeights
  const float* inv_std = nullptr;  // of PrepareWeights
  const float* mean = nullptr;     // running
  float* d_weight = nullptr;       // [outputs, taps, inputs]
  float* d_gamma = nullptr;        // [outputs]
  float* d_beta = nullptr;         // [outputs]
  const float* sum = nullptr;      // of g, [outputs]
};

// Handles all convolutions at once, one block per output channel.
template <class T> struct FoldedGradients {
  using Item = FoldedGradient<T>;
  const FoldedGradient<T>* gradients = nullptr;
  const FilterPart* parts = nullptr;
  int count = 0;  // of parts

  template <class F> static void for_each_part(int filter, const FilterShape& shape, F&& f) {
    for (int o = 0; o < shape.outputs; ++o) f(FilterPart{filter, o, 1});
  }
  int blocks() const { return count; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const auto team = team_of(block);
    const FilterPart part = parts[block.index()];
    const FoldedGradient<T>& of = gradients[part.filter];
    const FilterShape& shape = of.shape;
    const int o = part.first;
    const ChannelTiles tiles{of.rows, shape.outputs};
    const double sum = of.sum != nullptr ? static_cast<double>(of.sum[o])
                                         : team.sum(tiles.row_tiles(), [&](int tile) {
                                             return of.partial[tiles.partial(tile, 1, 0, o)];
                                           });
    const float factor = of.scale[o];
    const int each = shape.dense_each();
    const std::int64_t own = static_cast<std::int64_t>(o) * each;
    const float* w = of.weight + own;
    float* dw = of.d_weight + own;
    const T* from = of.d_folded + static_cast<std::int64_t>(o) * shape.stored_each();
    double dot = 0;
    if (shape.packs<T>()) {
      constexpr int kWidth = kPack<T>;
      dot = team.sum(each / kWidth, [&](int pack) {
        const std::int64_t at = static_cast<std::int64_t>(pack) * kWidth;
        const auto held = load_pack<kWidth>(from + at);
        const auto weights = load_pack<kWidth>(w + at);
        Pack<float, kWidth> out;
        double product = 0;
        RK_UNROLL
        for (int k = 0; k < kWidth; ++k) {
          product += static_cast<double>(held[k]) * static_cast<double>(weights[k]);
          out.set(k, held[k] * factor);
        }
        store_pack(dw + at, out);
        return product;
      });
    } else {
      dot = team.sum(each, [&](int i) {
        const float g = Element<T>::widen(from[shape.stored_at(i)]);
        dw[i] = g * factor;
        return static_cast<double>(g) * static_cast<double>(w[i]);
      });
    }
    if (block.thread() != 0) return;
    of.d_beta[o] = static_cast<float>(sum);
    of.d_gamma[o] = static_cast<float>(static_cast<double>(of.inv_std[o]) *
                                       (dot - static_cast<double>(of.mean[o]) * sum));
  }
};

}  // namespace rk
