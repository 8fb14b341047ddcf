// Products of one fixed shape, many times over:  C = A * B^T  with A (rows, depth), B (columns,
// depth) and C (rows, columns), all row major float32; B is packed once and used with many A.
//
// Each product runs on the calling thread alone, so that the bits of C depend neither on the number
// of threads nor on which thread computes; different members may call at the same time. Accumulates
// in float32.
#pragma once

#include "engine/device/buffer.h"
#include "engine/device/context.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rk {

class TileProduct {
 public:
  // `columns` must be a multiple of 64 and `depth` of 16 (the packed layout's blocks): pad with
  // zeros. `members`: how many threads will call, each with its own number below `members`.
  TileProduct(const Context& context, std::int64_t rows, std::int64_t columns, std::int64_t depth,
              int members);
  ~TileProduct();
  TileProduct(const TileProduct&) = delete;
  TileProduct& operator=(const TileProduct&) = delete;

  // A multiple of Buffer::kAlignment, so that packed tiles can lie one after another.
  std::size_t packed_bytes() const { return packed_bytes_; }
  void pack(int member, const float* b, void* packed) const;
  void run(int member, const float* a, const void* packed, float* c) const;

  // Whether an element's sum is formed in the same order wherever the element lies in the tile and
  // whichever operand is A, so that equal rows get equal bits. Tested on one tile of random
  // numbers.
  bool position_independent() const;

 private:
  struct Lane;
  struct State;
  std::int64_t rows_, columns_, depth_;
  std::size_t packed_bytes_ = 0;
  std::unique_ptr<State> state_;
};

}  // namespace rk
