#include "losses/products/symmetric_product.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "losses/products/transpose.h"
#include "losses/products/upper_tiles.h"

#include <algorithm>
#include <cstring>

namespace rk {
namespace {

constexpr std::int64_t kTile = SymmetricProduct::kTile;
constexpr std::int64_t kDepthStep = 16;  // of TileProduct

// Rows of the smallest product that pays.
constexpr std::int64_t kFewestRows = [] {
  std::int64_t rows = 1;
  while (!SymmetricProduct::pays(rows)) ++rows;
  return rows;
}();

// Writes a tile to its place, and transposed to the place across the diagonal.
void write_both(const float* tile, std::int64_t i_count, std::int64_t j_count, float* upper,
                float* lower, std::int64_t stride) {
  for (std::int64_t i = 0; i < i_count; ++i) {
    const float* from = tile + i * kTile;
    float* to = upper + i * stride;
    if (j_count == kTile) {
      // A constant size: a library call for every 64 numbers would take three times as long.
      std::memcpy(to, from, kTile * sizeof(float));
    } else {
      std::copy_n(from, j_count, to);
    }
  }
  transpose(tile, kTile, i_count, j_count, lower, stride);
}

// A tile on the diagonal is its own mirror image: its upper triangle goes to both halves.
void write_upper(const float* tile, std::int64_t count, float* to, std::int64_t stride) {
  transpose(tile, kTile, count, count, to, stride);
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy(tile + i * kTile + i, tile + i * kTile + count, to + i * stride + i);
  }
}

}  // namespace

void SymmetricProduct::allocate(const Context& context, std::int64_t rows, std::int64_t dim) {
  if (rows < kFewestRows) return;
  threads_ = context.threads();
  tiles_ = tiles_of(rows);
  depth_ = round_up(dim, kDepthStep);
  product_.emplace(context, kTile, kTile, depth_, threads_);
  packed_ = Buffer(product_->packed_bytes() * static_cast<std::size_t>(tiles_));
  padded_ = Buffer::of<float>(threads_ * kTile * depth_);
  product_tiles_ = Buffer::of<float>(threads_ * kTile * kTile);
}

std::int64_t SymmetricProduct::bytes() const {
  return static_cast<std::int64_t>(packed_.bytes() + padded_.bytes() + product_tiles_.bytes());
}

const float* SymmetricProduct::rows_of(const Input& input, std::int64_t tile, int member) const {
  const std::int64_t first = tile * kTile;
  const std::int64_t count = std::min(kTile, input.count - first);
  if (count == kTile && input.dim == depth_) return input.rows + first * depth_;
  float* rows = padded_.as<float>() + member * kTile * depth_;
  for (std::int64_t i = 0; i < kTile; ++i) {
    const std::int64_t given = i < count ? input.dim : 0;
    std::copy_n(input.rows + (first + i) * input.dim, given, rows + i * depth_);
    std::fill(rows + i * depth_ + given, rows + (i + 1) * depth_, 0.0F);
  }
  return rows;
}

void SymmetricProduct::run(const Context& context, std::int64_t rows, std::int64_t dim,
                           const float* e, float* s, std::int64_t stride) {
  const std::int64_t tiles = tiles_of(rows);
  expect(product_.has_value() && tiles <= tiles_ && dim <= depth_,
         "[symmetric_product] expected up to {} x {} as allocated, got {} x {}", tiles_ * kTile,
         depth_, rows, dim);
  const int threads = std::min(threads_, context.threads());
  const Input input{e, rows, dim};
  const auto packed = [&](std::int64_t tile) {
    return packed_.as<char>() + static_cast<std::size_t>(tile) * product_->packed_bytes();
  };
  parallel_for(threads, tiles, [&](std::int64_t tile, int member) {
    product_->pack(member, rows_of(input, tile, member), packed(tile));
  });
  for_upper_tiles(threads, tiles, [&](std::int64_t i, std::int64_t j, int member) {
    float* tile = product_tiles_.as<float>() + member * kTile * kTile;
    product_->run(member, rows_of(input, i, member), packed(j), tile);
    float* upper = s + i * kTile * stride + j * kTile;
    const std::int64_t i_count = std::min(kTile, rows - i * kTile);
    if (i == j) {
      write_upper(tile, i_count, upper, stride);
    } else {
      write_both(tile, i_count, std::min(kTile, rows - j * kTile), upper,
                 s + j * kTile * stride + i * kTile, stride);
    }
  });
}

}  // namespace rk
