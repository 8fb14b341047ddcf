// Passes over a row-major matrix of floats: a linear layer's bias and the bias's gradient, the sums
// of what the rows of a loss have measured, and a matrix plus its transpose.
//
// Bytes moved: FillRows 4 rows columns, ColumnSums sizeof(T) rows columns, AddTranspose 8 rows^2.
#pragma once

#include "kernels/block_team.h"
#include "kernels/blocks/channel_tiles.h"
#include "kernels/launch_on_gpu.h"

#include <cstdint>

namespace rk {

// y[r][c] = row[c].
struct FillRows {
  int rows = 0;
  int columns = 0;
  const float* row = nullptr;
  float* y = nullptr;

  int blocks() const { return rows; }  // one per row
  template <class Block> RK_FN void operator()(const Block& block) const {
    float* to = y + static_cast<std::int64_t>(block.index()) * columns;
    team_of(block).for_each(columns, [&](int c) { to[c] = row[c]; });
  }
};

// sums[c] = the sum of values[r][c] over rows, in double, rounded once; the order depends only on
// the number of rows.
template <class T, class Sum> struct ColumnSums {
  static constexpr bool kOnGpu = kRunsOnGpu<T>;

  int rows = 0;
  int columns = 0;
  const T* values = nullptr;
  Sum* sums = nullptr;

  template <int kThreads> using Shared = FinishMemory<1, kThreads>;
  int blocks() const { return finishing_blocks(columns); }
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    finish_tiles<1>(
        block, rows, columns, shared,
        [&](int row, int column, double(&sum)[1]) {
          sum[0] += static_cast<double>(values[static_cast<std::int64_t>(row) * columns + column]);
        },
        [&](int column, const double(&total)[1]) { sums[column] = static_cast<Sum>(total[0]); });
  }
};

// matrix = matrix + its transpose, of `rows` rows that are `stride` apart. A block takes the tiles
// (y, x) and (x, y), x >= y, and reads and writes whole lines of both.
struct AddTranspose {
  static constexpr int kTile = 32;

  float* matrix = nullptr;
  std::int64_t stride = 0;
  int rows = 0;

  // One extra column, so that a column of a tile lies in 32 different banks.
  struct Tiles {
    float upper[kBound<kTile>][kBound<kTile + 1>];
    float lower[kBound<kTile>][kBound<kTile + 1>];
  };
  template <int kThreads> using Shared = Tiles;

  RK_BOTH int tiles() const { return divide_up(rows, kTile); }
  int blocks() const { return tiles() * tiles(); }
  template <class Block> RK_FN void operator()(const Block& block, Tiles& shared) const {
    const int tile_y = block.index() / tiles();
    const int tile_x = block.index() % tiles();
    if (tile_x < tile_y) return;
    for_elements(block, tile_y, tile_x,
                 [&](int y, int x, const float& held) { shared.upper[y][x] = held; });
    for_elements(block, tile_x, tile_y,
                 [&](int y, int x, const float& held) { shared.lower[y][x] = held; });
    block.sync();
    for_elements(block, tile_y, tile_x, [&](int y, int x, float& held) {
      held = shared.upper[y][x] + shared.lower[x][y];
    });
    // A diagonal tile is its own mirror image and has been written already.
    if (tile_x == tile_y) return;
    for_elements(block, tile_x, tile_y, [&](int y, int x, float& held) {
      held = shared.lower[y][x] + shared.upper[x][y];
    });
  }

 private:
  // Calls f(y, x, element) for the elements of a tile inside the matrix, y and x within the tile.
  template <class Block, class F>
  RK_FN RK_INLINE void for_elements(const Block& block, int tile_y, int tile_x, F&& f) const {
    for (int i = block.thread(); i < kTile * kTile; i += Block::kThreads) {
      const int y = i / kTile, x = i % kTile;
      const int row = tile_y * kTile + y, column = tile_x * kTile + x;
      if (row < rows && column < rows) f(y, x, matrix[row * stride + column]);
    }
  }
};

}  // namespace rk
