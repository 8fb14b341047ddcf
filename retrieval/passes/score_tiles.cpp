#include "retrieval/passes/score_tiles.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/parallel.h"

#include <algorithm>
#include <vector>

namespace rk {
namespace {

constexpr std::int64_t kDepthStep = 16;
// Packing and gathering are done once per strip: a column is packed once in the whole pass, and a
// row is gathered once for every strip of columns.
constexpr std::int64_t kColumnStripBytes = std::int64_t{32} << 20;
constexpr std::int64_t kRowStripTiles = 16;  // a minimum, rounded up to a multiple of the threads

void gather(const OrderedRows& from, std::int64_t dim, Range positions, std::int64_t padded_rows,
            std::int64_t depth, float* out) {
  for (std::int64_t p = positions.begin; p < positions.end; ++p) {
    float* row = out + (p - positions.begin) * depth;
    std::copy_n(from.data + from.order[p] * dim, dim, row);
    std::fill(row + dim, row + depth, 0.0F);
  }
  std::fill(out + positions.size() * depth, out + padded_rows * depth, 0.0F);
}

}  // namespace

ScoreTiles::ScoreTiles(const Context& context, OrderedRows queries, OrderedRows gallery,
                       std::int64_t dim)
    : threads_(context.threads()),
      queries_(queries),
      gallery_(gallery),
      dim_(dim),
      depth_(round_up(dim, kDepthStep)),
      strip_rows_(std::min(kTileRows * round_up(kRowStripTiles, threads_),
                           round_up(queries.count, kTileRows))),
      strip_columns_(std::min(strip_columns(dim), round_up(gallery.count, kTileColumns))),
      product_(context, kTileRows, kTileColumns, depth_, threads_),
      row_strip_(Buffer::of<float>(strip_rows_ * depth_)),
      column_strip_(product_.packed_bytes() *
                    static_cast<std::size_t>(strip_columns_ / kTileColumns)),
      staging_(Buffer::of<float>(threads_ * kTileColumns * depth_)),
      tiles_(Buffer::of<float>(threads_ * kTileRows * kTileColumns)) {
  expect(queries.count > 0 && gallery.count > 0 && dim > 0,
         "[score_tiles] expected rows and dimensions, got {} and {} rows of {}", queries.count,
         gallery.count, dim);
}

std::int64_t ScoreTiles::strip_columns(std::int64_t dim) {
  const std::int64_t column_bytes = round_up(dim, kDepthStep) * std::int64_t{sizeof(float)};
  return std::max(kColumnStripBytes / column_bytes / kTileColumns, std::int64_t{1}) * kTileColumns;
}

std::size_t ScoreTiles::bytes() const {
  return row_strip_.bytes() + column_strip_.bytes() + staging_.bytes() + tiles_.bytes();
}

void ScoreTiles::pack_columns(Range columns) {
  parallel_for(
      threads_, divide_up(columns.size(), kTileColumns), [&](std::int64_t tile, int member) {
        const std::int64_t begin = columns.begin + tile * kTileColumns;
        float* rows = staging_.as<float>() + member * kTileColumns * depth_;
        gather(gallery_, dim_, {begin, std::min(begin + kTileColumns, columns.end)}, kTileColumns,
               depth_, rows);
        product_.pack(
            member, rows,
            column_strip_.as<char>() + static_cast<std::size_t>(tile) * product_.packed_bytes());
      });
}

void ScoreTiles::gather_rows(Range rows) {
  parallel_for(threads_, divide_up(rows.size(), kTileRows), [&](std::int64_t tile, int) {
    const std::int64_t begin = rows.begin + tile * kTileRows;
    gather(queries_, dim_, {begin, std::min(begin + kTileRows, rows.end)}, kTileRows, depth_,
           row_strip_.as<float>() + tile * kTileRows * depth_);
  });
}

std::int64_t ScoreTiles::visit_strip(Range rows, Range columns, TileVisitor& visitor) {
  const std::int64_t row_tiles = divide_up(rows.size(), kTileRows);
  std::vector<std::int64_t> computed(static_cast<std::size_t>(threads_), 0);
  // Member m takes row tiles m, m + threads, ...: so in an upper triangle every member gets long
  // and short rows.
  parallel_for(threads_, threads_, [&](std::int64_t lane, int) {
    const int member = static_cast<int>(lane);
    float* scores = tiles_.as<float>() + member * kTileRows * kTileColumns;
    for (std::int64_t begin = columns.begin; begin < columns.end; begin += kTileColumns) {
      const Range tile_columns{begin, std::min(begin + kTileColumns, columns.end)};
      const void* packed = column_strip_.as<char>() +
                           static_cast<std::size_t>((begin - columns.begin) / kTileColumns) *
                               product_.packed_bytes();
      for (std::int64_t t = member; t < row_tiles; t += threads_) {
        const std::int64_t first = rows.begin + t * kTileRows;
        const Range tile_rows{first, std::min(first + kTileRows, rows.end)};
        if (!visitor.wants(tile_rows, tile_columns)) continue;
        product_.run(member, row_strip_.as<float>() + t * kTileRows * depth_, packed, scores);
        visitor.visit(member, {tile_rows, tile_columns, scores});
        ++computed[at(member)];
      }
    }
  });
  std::int64_t total = 0;
  for (const std::int64_t count : computed) total += count;
  return total;
}

bool ScoreTiles::run(Range rows, TileVisitor& visitor, const std::function<bool(double)>& poll) {
  const auto for_each_strip = [&](auto&& f) {
    for (std::int64_t c = 0; c < gallery_.count; c += strip_columns_) {
      const Range columns{c, std::min(c + strip_columns_, gallery_.count)};
      for (std::int64_t r = rows.begin; r < rows.end; r += strip_rows_) {
        const Range strip{r, std::min(r + strip_rows_, rows.end)};
        if (visitor.wants(strip, columns) && !f(strip, columns)) return false;
      }
    }
    return true;
  };
  const auto area = [](Range r, Range c) {
    return static_cast<double>(r.size()) * static_cast<double>(c.size());
  };
  double total = 0, done = 0;
  for_each_strip([&](Range r, Range c) { return total += area(r, c), true; });

  Range packed{0, 0};
  const bool finished = for_each_strip([&](Range r, Range c) {
    if (!poll(done / total)) return false;
    if (packed.end != c.end) {
      if (packed.size() > 0) visitor.end_strip(packed);
      packed = c;
      pack_columns(c);
      visitor.begin_strip(c);
    }
    gather_rows(r);
    tiles_computed_ += visit_strip(r, c, visitor);
    done += area(r, c);
    return true;
  });
  if (packed.size() > 0) visitor.end_strip(packed);
  return finished && poll(1.0);
}

}  // namespace rk
