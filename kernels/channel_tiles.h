// How blocks share a matrix of `rows` pixels by `channels` (NHWC), for kernels that hold something
// for each channel: a block takes a tile of kColumns channels, which is a line of memory in 16
// bits, by rows / row_tiles() rows. A thread keeps its channels, so what belongs to them stays in
// registers, and takes every kLanes-th row.
//
// Sums over rows: in float over the rows of a thread (at most kMostRows / kLanes), in double over
// the threads of a tile, in the order of the lanes; then a second kernel adds the tiles of a
// channel in double, in fixed order (finish_tiles). Partial sums are double [row_tiles, sums,
// channels].
#pragma once

#include "kernels/element.h"

#include <algorithm>
#include <cstdint>

namespace rk {

struct ChannelTiles {
  // The whole of the largest GPU of today, some blocks a multiprocessor.
  static constexpr int kBlocks = 1024;
  static constexpr int kColumns = 64;
  static constexpr int kFewestRows = 128;
  static constexpr int kMostRows = 8192;

  std::int64_t rows = 0;
  int channels = 0;

  RK_BOTH int column_tiles() const { return (channels + kColumns - 1) / kColumns; }
  // Of every tile but the last, which may have fewer.
  RK_BOTH std::int64_t tile_rows() const {
    const std::int64_t tiles = std::max(1, kBlocks / std::max(1, column_tiles()));
    return std::clamp<std::int64_t>((rows + tiles - 1) / tiles, kFewestRows, kMostRows);
  }
  RK_BOTH int row_tiles() const {
    const std::int64_t each = tile_rows();
    return static_cast<int>((rows + each - 1) / each);
  }
  RK_BOTH int blocks() const { return column_tiles() * row_tiles(); }
  RK_BOTH std::int64_t first_row(int row_tile) const {
    return std::min(rows, row_tile * tile_rows());
  }

  // Of a block: neighbours in memory run side by side.
  RK_BOTH int row_tile(int block) const { return block / column_tiles(); }
  RK_BOTH int first_column(int block) const { return block % column_tiles() * kColumns; }

  // Doubles that partial sums take.
  std::int64_t partials(int sums) const {
    return static_cast<std::int64_t>(row_tiles()) * sums * channels;
  }
  RK_BOTH std::int64_t partial(int row_tile, int sums, int sum, int channel) const {
    return (static_cast<std::int64_t>(row_tile) * sums + sum) * channels + channel;
  }
};

// Threads of a block over a tile: kAcross of them side by side, kLanes rows at once.
template <int kThreads, int kWidth, int kColumns = ChannelTiles::kColumns> struct TileThreads {
  static constexpr int kPacks = kColumns / kWidth;
  static constexpr int kAcross = std::min(kPacks, std::max(1, kThreads / 2));
  static constexpr int kLanes = kThreads / kAcross;
  static_assert(kPacks % kAcross == 0 && kAcross * kLanes == kThreads);
};

// f(channel, first row, end of rows, step) for the packs of channels that this thread takes.
template <int kWidth, class Block, class F>
RK_FN RK_INLINE void for_columns(const Block& block, const ChannelTiles& tiles, F&& f) {
  using Threads = TileThreads<Block::kThreads, kWidth>;
  const int x = block.thread() % Threads::kAcross;
  const int lane = block.thread() / Threads::kAcross;
  const int row_tile = tiles.row_tile(block.index());
  const std::int64_t first = tiles.first_row(row_tile) + lane;
  const std::int64_t end = tiles.first_row(row_tile + 1);
  for (int v = x; v < Threads::kPacks; v += Threads::kAcross) {
    const int channel = tiles.first_column(block.index()) + v * kWidth;
    if (channel < tiles.channels) f(channel, first, end, Threads::kLanes);
  }
}

// use(row, load(row)) for the rows of a thread, kAtOnce loads in flight: what use() stores might be
// what the next load() reads, for all that the compiler knows.
template <int kAtOnce, class Load, class Use>
RK_FN RK_INLINE void for_rows(std::int64_t first, std::int64_t end, std::int64_t step, Load&& load,
                              Use&& use) {
  std::int64_t row = first;
  for (; row + (kAtOnce - 1) * step < end; row += kAtOnce * step) {
    decltype(load(row)) held[kBound<kAtOnce>];
    RK_UNROLL
    for (int k = 0; k < kAtOnce; ++k) held[k] = load(row + k * step);
    RK_UNROLL
    for (int k = 0; k < kAtOnce; ++k) use(row + k * step, held[k]);
  }
  for (; row < end; row += step) use(row, load(row));
}

// The same from the last row back: what the pass before has read last may still be in a cache.
template <int kAtOnce, class Load, class Use>
RK_FN RK_INLINE void for_rows_back(std::int64_t first, std::int64_t end, std::int64_t step,
                                   Load&& load, Use&& use) {
  if (first >= end) return;
  const std::int64_t last = first + (end - 1 - first) / step * step;
  for_rows<kAtOnce>(
      first, end, step, [&](std::int64_t row) { return load(first + last - row); },
      [&](std::int64_t row, const auto& held) { use(first + last - row, held); });
}

// Shared memory of tile_sums() for packs of T.
template <class T, int kSums, int kThreads> struct TileSumsMemory {
  float sums[kBound<kSums>][kBound<kThreads * kPack<T>>];
};

// rows(channel, first, end, step, sums) adds to float sums[kSums][kWidth] over the rows of a
// thread; done(channel, totals) gets double totals[kSums] of each channel of the tile, once.
template <int kWidth, int kSums, class Block, class Memory, class Rows, class Done>
RK_FN RK_INLINE void tile_sums(const Block& block, const ChannelTiles& tiles, Memory& memory,
                               Rows&& rows, Done&& done) {
  using Threads = TileThreads<Block::kThreads, kWidth>;
  constexpr int kChannels = Threads::kAcross * kWidth;  // summed at once
  const int x = block.thread() % Threads::kAcross;
  const int lane = block.thread() / Threads::kAcross;
  const int row_tile = tiles.row_tile(block.index());
  const std::int64_t first = tiles.first_row(row_tile);
  const std::int64_t end = tiles.first_row(row_tile + 1);
  for (int v = 0; v < Threads::kPacks; v += Threads::kAcross) {
    const int channel = tiles.first_column(block.index()) + v * kWidth;
    float sums[kBound<kSums>][kBound<kWidth>] = {};
    if (channel + x * kWidth < tiles.channels) {
      rows(channel + x * kWidth, first + lane, end, Threads::kLanes, sums);
    }
    RK_UNROLL
    for (int s = 0; s < kSums; ++s) {
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        memory.sums[s][lane * kChannels + x * kWidth + k] = sums[s][k];
      }
    }
    block.sync();
    for (int c = block.thread(); c < kChannels; c += Block::kThreads) {
      double totals[kBound<kSums>] = {};
      for (int l = 0; l < Threads::kLanes; ++l) {
        for (int s = 0; s < kSums; ++s) {
          totals[s] += static_cast<double>(memory.sums[s][l * kChannels + c]);
        }
      }
      if (channel + c < tiles.channels) done(channel + c, totals);
    }
    if constexpr (Threads::kPacks > Threads::kAcross) block.sync();  // they are written over next
  }
}

// The second kernel: a block takes kFinished channels, its threads share the tiles of each.
inline constexpr int kFinished = 4;
RK_BOTH inline int finishing_blocks(int channels) { return (channels + kFinished - 1) / kFinished; }

template <int kSums, int kThreads> struct FinishMemory {
  double sums[kBound<kSums>][kBound<kThreads>];
};

// add(tile, channel, sums) adds what a tile of a channel has to double sums[kSums];
// done(channel, totals) gets those of all `tiles`, once a channel.
template <int kSums, class Block, class Memory, class Add, class Done>
RK_FN RK_INLINE void finish_tiles(const Block& block, int tiles, int channels, Memory& memory,
                                  Add&& add, Done&& done) {
  using Threads = TileThreads<Block::kThreads, 1, kFinished>;
  const int x = block.thread() % Threads::kAcross;
  const int lane = block.thread() / Threads::kAcross;
  for (int v = 0; v < kFinished; v += Threads::kAcross) {
    const int channel = block.index() * kFinished + v + x;
    double sums[kBound<kSums>] = {};
    if (channel < channels) {
      for (int tile = lane; tile < tiles; tile += Threads::kLanes) add(tile, channel, sums);
    }
    for (int s = 0; s < kSums; ++s) memory.sums[s][block.thread()] = sums[s];
    block.sync();
    if (lane == 0 && channel < channels) {
      double totals[kBound<kSums>] = {};
      for (int l = 0; l < Threads::kLanes; ++l) {
        for (int s = 0; s < kSums; ++s) totals[s] += memory.sums[s][l * Threads::kAcross + x];
      }
      done(channel, totals);
    }
    if constexpr (kFinished > Threads::kAcross) block.sync();  // they are written over next
  }
}

}  // namespace rk
