// The way back from similarities, dE = (G + G^T) E + G_memory * memory, where each row of
// G = dLoss/dS has a few numbers only: rows of E and of the memory are added up in place of a
// product of matrices, and G is never made.
//   dE_i = sum over the numbers of row i of g e_column + sum over those of rows j in column i of
//     g e_j
// in that order, j ascending, each row by one thread: the bits do not depend on their number.
#pragma once

#include "engine/device/context.h"
#include "losses/frame/loss.h"

#include <cstdint>
#include <vector>

namespace rk {

template <class S> class SparseGradient {
 public:
  struct Number {
    std::int32_t column = 0;  // in [0, rows + memory)
    S value = 0;              // 0: nothing is read of that column
  };

  // For batches of up to shape.rows rows of `width` numbers; the only call that allocates.
  void plan(const LossShape& shape, int width);

  // [width], all to be written before backward(). Two may lie in one column.
  Number* row(std::int64_t query) { return numbers_.data() + query * width_; }
  // grad [rows, dim] is overwritten.
  void backward(const Context& context, const LossInput<S>& input, S* grad);
  std::int64_t bytes() const;

 private:
  void find_incoming(std::int64_t rows);

  std::int64_t width_ = 0;
  std::vector<Number> numbers_;         // [rows, width]
  std::vector<std::int64_t> first_;     // [rows + 1], where a column's incoming numbers begin
  std::vector<std::int64_t> incoming_;  // those not 0 in columns of the batch: places in numbers_
  std::vector<std::int64_t> work_;      // [rows + 1], for parallel_by_work
};

}  // namespace rk
