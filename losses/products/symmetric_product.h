// S = E E^T in float, each pair of rows once: one thread computes each square tile on or above the
// diagonal and writes it to both places while it is in cache. So S is symmetric to the bit, and its
// bits do not depend on the number of threads.
//   E  (rows, dim), row major    S  (rows, rows), `stride` floats from row to row
#pragma once

#include "engine/base/integers.h"
#include "engine/device/buffer.h"
#include "engine/device/context.h"
#include "engine/device/tile_product.h"

#include <cstdint>
#include <optional>

namespace rk {

class SymmetricProduct {
 public:
  static constexpr std::int64_t kTile = 64;

  // Whether tiles are faster than a plain product of all of S: if they, including the parts beyond
  // the edge, cover at most 7/10 of S. Packing rows and transposing tiles take a fifth to a quarter
  // of the tiles' time. Never true below 188 rows, always from 514 on.
  static constexpr bool pays(std::int64_t rows) {
    const std::int64_t tiles = tiles_of(rows);
    return rows > 0 && 10 * (tiles * (tiles + 1) / 2) * kTile * kTile <= 7 * rows * rows;
  }

  // For products of up to rows x dim for which pays() holds; the only call that allocates.
  void allocate(const Context& context, std::int64_t rows, std::int64_t dim);
  void run(const Context& context, std::int64_t rows, std::int64_t dim, const float* e, float* s,
           std::int64_t stride);
  std::int64_t bytes() const;

 private:
  struct Input {
    const float* rows;
    std::int64_t count, dim;
  };
  static constexpr std::int64_t tiles_of(std::int64_t rows) { return divide_up(rows, kTile); }
  const float* rows_of(const Input& input, std::int64_t tile, int member) const;

  int threads_ = 1;
  std::int64_t tiles_ = 0;
  std::int64_t depth_ = 0;  // dim, padded to the product's step
  std::optional<TileProduct> product_;
  Buffer packed_;  // [tiles_], the tiles' rows, packed as the product's second operand
  Buffer padded_;  // [threads, kTile, depth_]: padded rows at the edge, or if dim is not depth_
  Buffer product_tiles_;  // [threads, kTile, kTile]
};

}  // namespace rk
