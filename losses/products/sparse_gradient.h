// The backward pass of similarities, dE = (G + G^T) E + G_memory * memory, if each row of
// G = dLoss/dS has only a few non-zeros: adds up rows of E and of the memory instead of multiplying
// matrices, and never builds G.
//   dE_i = sum over the non-zeros g of row i of g e_column
//        + sum over the non-zeros g of rows j in column i of g e_j
// in that order, j ascending, each row by one thread: the bits do not depend on the number of
// threads.
#pragma once

#include "engine/device/context.h"
#include "losses/frame/loss.h"

#include <cstdint>
#include <vector>

namespace rk {

template <class S> class SparseGradient {
 public:
  struct NonZero {
    std::int32_t column = 0;  // in [0, rows + memory)
    S value = 0;              // 0: the column is not read
  };

  // For batches of up to shape.rows rows of `width` non-zeros; the only call that allocates.
  void allocate(const LossShape& shape, int width);

  // [width]; the caller must write all of them before backward(). Columns may repeat.
  NonZero* row(std::int64_t query) { return nonzeros_.data() + query * width_; }
  // grad [rows, dim] is overwritten.
  void backward(const Context& context, const LossInput<S>& input, S* grad);
  std::int64_t bytes() const;

 private:
  void find_incoming(std::int64_t rows);

  std::int64_t width_ = 0;
  std::vector<NonZero> nonzeros_;       // [rows, width]
  std::vector<std::int64_t> first_;     // [rows + 1], where a column's incoming non-zeros begin
  std::vector<std::int64_t> incoming_;  // indices into nonzeros_ of the non-zeros in batch columns
  std::vector<std::int64_t> work_;      // [rows + 1], for parallel_by_work
};

}  // namespace rk
