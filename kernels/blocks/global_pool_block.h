// Pooling of whole images on a GPU, x (N, rows, C) in T -> y (N, C) in float; definitions are those
// of layers/pool.h: average, maximum, or mean(max(x, epsilon)^p)^(1/p).
//
// Bytes moved, x = sizeof(T) elements of x: GlobalPool x; its gradient x to write, x more to
// accumulate and x more for kGem.
#pragma once

#include "kernels/blocks/channel_tiles.h"
#include "kernels/blocks/pool_kind.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rk {

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
  RK_BOTH int column_tiles() const { return divide_up(channels, kColumns); }
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
        for (int row = lane; row < rows; row += Threads::kDown) {
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
        finish(shared, image, c, channel + c, kChannels, Threads::kDown);
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
  RK_BOTH int column_tiles() const { return divide_up(channels, kColumns); }
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
      for (int row = lane; row < rows; row += Threads::kDown) {
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
