// How blocks share a matrix of `rows` pixels by `channels` (NHWC), for kernels with per-channel
// values: a block takes a tile of kColumns channels (a cache line of 16-bit elements) by rows /
// row_tiles() rows. A thread keeps the same channels, whose values stay in registers, and takes
// every kDown-th row.
//
// Sums over rows: in float over the rows of a thread (at most kMostRows / kDown), in double over
// the threads of a tile, in the order of the lanes; then a second kernel adds the tiles of a
// channel in double, in fixed order (finish_tiles). Partial sums are double [row_tiles, sums,
// channels].
#pragma once

#include "kernels/element.h"

#include <algorithm>
#include <cstdint>

namespace rk {

struct ChannelTiles {
  // Fills the largest GPU of today with several blocks per multiprocessor.
  static constexpr int kBlocks = 1024;
  static constexpr int kColumns = 64;
  static constexpr int kFewestRows = 128;
  static constexpr int kMostRows = 8192;

  std::int64_t rows = 0;
  int channels = 0;

  RK_BOTH int column_tiles() const { return divide_up(channels, kColumns); }
  // Rows of every tile but the last, which may have fewer.
  RK_BOTH std::int64_t tile_rows() const {
    const std::int64_t tiles = std::max(1, kBlocks / std::max(1, column_tiles()));
    return std::clamp<std::int64_t>(divide_up(rows, tiles), kFewestRows, kMostRows);
  }
  RK_BOTH int row_tiles() const {
    const std::int64_t each = tile_rows();
    return static_cast<int>(divide_up(rows, each));
  }
  RK_BOTH int blocks() const { return column_tiles() * row_tiles(); }
  RK_BOTH std::int64_t first_row(int row_tile) const {
    return std::min(rows, row_tile * tile_rows());
  }

  // Within a tile, rows are counted from its first row, and elements from a channel of that row
  // (origin). Both counts fit an int (kMostRows times 2^18 channels), which halves the registers
  // that addresses take.
  RK_BOTH int rows_of(int row_tile) const {
    return static_cast<int>(first_row(row_tile + 1) - first_row(row_tile));
  }
  RK_BOTH std::int64_t origin(int row_tile, int channel) const {
    return first_row(row_tile) * channels + channel;
  }

  // The tile of a block: tiles next to each other in memory run side by side.
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

// kBlocksAtOnce (kernels/launch.h) of kernels that add to a residual's gradient: up to sm_90 nvcc
// manages with the registers of four blocks; on sm_100 it would spill some.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
inline constexpr int kBlocksThatAdd = 3;
#else
inline constexpr int kBlocksThatAdd = 4;
#endif

// How a block's threads cover a tile: kAcross threads side by side, kDown rows at once.
template <int kThreads, int kWidth, int kColumns = ChannelTiles::kColumns> struct TileThreads {
  static constexpr int kPacks = kColumns / kWidth;
  static constexpr int kAcross = std::min(kPacks, std::max(1, kThreads / 2));
  static constexpr int kDown = kThreads / kAcross;
  static_assert(kPacks % kAcross == 0 && kAcross * kDown == kThreads);
};

// Calls f(channel, first row, end of rows, step) for the packs of channels that this thread takes,
// with rows counted from the tile's first.
template <int kWidth, class Block, class F>
RK_FN RK_INLINE void for_columns(const Block& block, const ChannelTiles& tiles, F&& f) {
  using Threads = TileThreads<Block::kThreads, kWidth>;
  const int x = block.thread() % Threads::kAcross;
  const int lane = block.thread() / Threads::kAcross;
  const int row_tile = tiles.row_tile(block.index());
  const int end = tiles.rows_of(row_tile);
  for (int v = 0; v < Threads::kPacks; v += Threads::kAcross) {
    const int channel = tiles.first_column(block.index()) + (v + x) * kWidth;
    if (channel < tiles.channels) f(channel, lane, end, Threads::kDown);
  }
}

// Calls use.operator()<n>(row, held) for n rows of a thread at once, `step` apart, with held[k] =
// load(row + k step). All n loads come before use(), so that kAtOnce are in flight: the compiler
// could not move a load() before a use(), which might store what that load() reads.
template <int kAtOnce, class Load, class Use>
RK_FN RK_INLINE void for_rows_together(int first, int end, int step, Load&& load, Use&& use) {
  int row = first;
  RK_UNROLL_BY(1)
  for (; row + (kAtOnce - 1) * step < end; row += kAtOnce * step) {
    decltype(load(row)) held[kBound<kAtOnce>];
    RK_UNROLL
    for (int k = 0; k < kAtOnce; ++k) held[k] = load(row + k * step);
    use.template operator()<kAtOnce>(row, held);
  }
  RK_UNROLL_BY(1)
  for (; row < end; row += step) {
    decltype(load(row)) held[1] = {load(row)};
    use.template operator()<1>(row, held);
  }
}

// Calls use(row, load(row)), one row after the other, with kAtOnce loads in flight.
template <int kAtOnce, class Load, class Use>
RK_FN RK_INLINE void for_rows(int first, int end, int step, Load&& load, Use&& use) {
  for_rows_together<kAtOnce>(first, end, step, load, [&]<int kRows>(int row, auto& held) {
    RK_UNROLL
    for (int k = 0; k < kRows; ++k) use(row + k * step, held[k]);
  });
}

// A second pass over the same tiles runs backwards, because what the first pass read last may still
// be in a cache. Blocks start in order and not all at once, so the last tiles come first.
template <class Block> class LastBlockFirst : public Block {
 public:
  RK_FN explicit LastBlockFirst(const Block& block) : Block(block) {}
  RK_FN RK_INLINE int index() const { return Block::blocks() - 1 - Block::index(); }
};

// Within a tile the last rows come first: first + last_row(...) - row runs through the same rows
// from the last one back.
RK_FN RK_INLINE int last_row(int first, int end, int step) {
  return first < end ? first + (end - 1 - first) / step * step : first;
}

template <int kAtOnce, class Load, class Use>
RK_FN RK_INLINE void for_rows_back(int first, int end, int step, Load&& load, Use&& use) {
  const int both = first + last_row(first, end, step);
  for_rows<kAtOnce>(
      first, end, step, [&](int row) { return load(both - row); },
      [&](int row, auto& held) { use(both - row, held); });
}

// kNumbers floats of every channel of a tile, in shared memory: registers limit how many threads
// can wait for memory at once, so a thread reads its channels' numbers again for each group of rows
// that it holds, a part of a pack at a time.
template <int kNumbers> struct TileNumbers {
  template <int kWidth> static constexpr int kPart = std::min(kWidth, 2);

  alignas(16) float numbers[kBound<kNumbers>][kBound<ChannelTiles::kColumns>];

  // Stores the first parts of all packs before the second parts, so that neighbouring threads read
  // neighbouring words.
  template <int kWidth> RK_FN RK_INLINE static int place(int column) {
    constexpr int kPacks = ChannelTiles::kColumns / kWidth;
    return (column % kWidth / kPart<kWidth> * kPacks + column / kWidth) * kPart<kWidth> +
           column % kPart<kWidth>;
  }

  // from: [channels] each. Ends with a barrier.
  template <int kWidth, class Block>
  RK_FN RK_INLINE void fill(const Block& block, const ChannelTiles& tiles,
                            const float* const (&from)[kBound<kNumbers>]) {
    const int first = tiles.first_column(block.index());
    const int columns = std::min(+ChannelTiles::kColumns, tiles.channels - first);
    RK_UNROLL_BY(1)
    for (int c = block.thread(); c < columns; c += Block::kThreads) {
      RK_UNROLL
      for (int n = 0; n < kNumbers; ++n) numbers[n][place<kWidth>(c)] = from[n][first + c];
    }
    block.sync();
  }

  // Number `number` of kPart<kWidth> channels from `column` of the tile.
  template <int kWidth>
  RK_FN RK_INLINE Pack<float, kPart<kWidth>> load(int number, int column) const {
    return load_shared_pack<kPart<kWidth>>(numbers[number] + place<kWidth>(column));
  }
};

// Shared memory of tile_sums() for packs of T.
template <class T, int kSums, int kThreads> struct TileSumsMemory {
  float sums[kBound<kSums>][kBound<kThreads * kPack<T>>];
};

// Calls rows(channel, first, end, step, sums) as for_columns() does; rows() adds the rows of a
// thread to float sums[kSums][kWidth]. Then calls done(channel, totals) with double totals[kSums]
// once for each channel of the tile.
template <int kWidth, int kSums, class Block, class Memory, class Rows, class Done>
RK_FN RK_INLINE void tile_sums(const Block& block, const ChannelTiles& tiles, Memory& memory,
                               Rows&& rows, Done&& done) {
  using Threads = TileThreads<Block::kThreads, kWidth>;
  constexpr int kChannels = Threads::kAcross * kWidth;  // summed at once
  const int x = block.thread() % Threads::kAcross;
  const int lane = block.thread() / Threads::kAcross;
  const int row_tile = tiles.row_tile(block.index());
  const int end = tiles.rows_of(row_tile);
  for (int v = 0; v < Threads::kPacks; v += Threads::kAcross) {
    const int channel = tiles.first_column(block.index()) + v * kWidth;
    float sums[kBound<kSums>][kBound<kWidth>] = {};
    if (channel + x * kWidth < tiles.channels) {
      rows(channel + x * kWidth, lane, end, Threads::kDown, sums);
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
      RK_UNROLL_BY(8)
      for (int l = 0; l < Threads::kDown; ++l) {
        for (int s = 0; s < kSums; ++s) {
          totals[s] += static_cast<double>(memory.sums[s][l * kChannels + c]);
        }
      }
      if (channel + c < tiles.channels) done(channel + c, totals);
    }
    if constexpr (Threads::kPacks > Threads::kAcross) block.sync();  // memory is overwritten next
  }
}

// The second kernel: a block takes kFinished channels, its threads share the tiles of each.
inline constexpr int kFinished = 4;
RK_BOTH inline int finishing_blocks(int channels) { return divide_up(channels, kFinished); }

template <int kSums, int kThreads> struct FinishMemory {
  double sums[kBound<kSums>][kBound<kThreads>];
};

// add(tile, channel, sums) adds a tile's partial sums of a channel to double sums[kSums];
// done(channel, totals) gets the totals over all `tiles`, once for each channel.
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
      for (int tile = lane; tile < tiles; tile += Threads::kDown) add(tile, channel, sums);
    }
    for (int s = 0; s < kSums; ++s) memory.sums[s][block.thread()] = sums[s];
    block.sync();
    if (lane == 0 && channel < channels) {
      double totals[kBound<kSums>] = {};
      for (int l = 0; l < Threads::kDown; ++l) {
        for (int s = 0; s < kSums; ++s) totals[s] += memory.sums[s][l * Threads::kAcross + x];
      }
      done(channel, totals);
    }
    if constexpr (kFinished > Threads::kAcross) block.sync();  // memory is overwritten next
  }
}

}  // namespace rk
