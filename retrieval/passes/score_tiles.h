// The matrix of scores S = Q G^T tile by tile, never whole. Rows are gathered in a given order, in
// strips; a strip of columns is packed once for all rows. Every tile has the same shape (edges are
// padded with zero rows), and one thread computes it in one call of one primitive, so equal pairs
// of rows get equal bits in any tile and for any number of threads.
#pragma once

#include "engine/device/buffer.h"
#include "engine/device/context.h"
#include "engine/device/tile_product.h"
#include "retrieval/passes/range.h"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace rk {

struct ScoreTile {
  Range rows, columns;  // positions; without padding
  // (rows, columns), kTileColumns floats from row to row; the visitor may overwrite them.
  float* scores;
};

class TileVisitor {
 public:
  virtual ~TileVisitor() = default;
  // Called for tiles and for whole strips; false skips them.
  virtual bool wants(Range rows, Range columns) const = 0;
  // Several members call this at the same time, but never for two tiles that share rows. Tiles of
  // the same rows come in ascending order of columns within a strip.
  virtual void visit(int member, const ScoreTile& tile) = 0;
  virtual void begin_strip(Range /*columns*/) {}
  virtual void end_strip(Range /*columns*/) {}
};

// Rows of a matrix (row major, `dim` floats per row) in another order.
struct OrderedRows {
  const float* data;
  const std::int64_t* order;  // position -> row
  std::int64_t count;
};

class ScoreTiles {
 public:
  static constexpr std::int64_t kTileRows = 64;
  static constexpr std::int64_t kTileColumns = 256;

  ScoreTiles(const Context& context, OrderedRows queries, OrderedRows gallery, std::int64_t dim);
  // The columns of a strip, if the gallery has as many.
  static std::int64_t strip_columns(std::int64_t dim);

  // Visits every wanted tile of `rows` (starting at a multiple of kTileRows) against all columns.
  // Calls `poll` between strips with the share done; if it returns false, run() stops and returns
  // false.
  bool run(Range rows, TileVisitor& visitor, const std::function<bool(double)>& poll);

  bool position_independent() const { return product_.position_independent(); }
  std::size_t bytes() const;
  std::int64_t tiles_computed() const { return tiles_computed_; }
  std::int64_t flops_per_tile() const { return 2 * kTileRows * kTileColumns * depth_; }

 private:
  void pack_columns(Range columns);
  void gather_rows(Range rows);
  std::int64_t visit_strip(Range rows, Range columns, TileVisitor& visitor);

  int threads_;
  OrderedRows queries_, gallery_;
  std::int64_t dim_, depth_;  // depth_: dim_ padded to the product's step
  std::int64_t strip_rows_, strip_columns_;
  TileProduct product_;
  Buffer row_strip_, column_strip_, staging_, tiles_;
  std::int64_t tiles_computed_ = 0;
};

}  // namespace rk
