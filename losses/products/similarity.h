// The matrix of similarities S = E [E; memory]^T of a batch and its backward pass. Only one matrix
// is kept: the gradient G = dLoss/dS overwrites the rows.
//   forward:   S, (N, columns), row stride pad(columns) or more; on the CPU the square part uses
//     its symmetry if that is faster (SymmetricProduct::pays), but never in double, which only
//     checks and tests use
//   backward:  dE = (G + G^T) E for the square part, + G_memory * memory: the memory gets no
//     gradient
#pragma once

#include "losses/frame/loss.h"
#include "losses/products/symmetric_product.h"

#include <cstdint>
#include <optional>

namespace rk {

template <class S> class SimilarityMatrix {
 public:
  void allocate(const Context& context, const LossShape& shape);
  void forward(const Context& context, const LossInput<S>& input);
  // `nonzeros`: how many elements of G are not 0, which only the CPU knows. If they are few, rows
  // are added up instead of a matrix product. Afterwards the square part of the matrix holds
  // G + G^T.
  void backward(const Context& context, const LossInput<S>& input, std::int64_t nonzeros, S* grad);

  S* row(std::int64_t query) { return matrix_.as<S>() + query * stride_; }
  std::int64_t stride() const { return stride_; }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(matrix_.bytes()) + (symmetric_ ? symmetric_->bytes() : 0);
  }

 private:
  void add_transpose(const Context& context, std::int64_t rows);

  std::optional<SymmetricProduct> symmetric_;  // on the CPU
  Memory matrix_;
  std::int64_t capacity_ = 0;  // elements
  std::int64_t stride_ = 0;
};

}  // namespace rk
