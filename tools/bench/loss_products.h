// The matrix products of a ranking loss without its rows, which `bench loss` times beside the loss.
#pragma once

#include "engine/device/context.h"
#include "losses/frame/entry.h"
#include "losses/frame/loss.h"
#include "losses/products/similarity.h"
#include "losses/products/sparse_gradient.h"

#include <cstdint>

namespace rk {

class LossProducts {
 public:
  // What `input` and `output` point to must outlive this object; products of gradients overwrite
  // the output's.
  LossProducts(const Context& context, const LossInput<float>& input, LossOutput<float>& output,
               const LossShape& shape, const LossEntry& entry);

  // All products of the loss: S, and the gradients of embeddings and proxies from a matrix of S's
  // size.
  void run();
  // One GEMM of the loss's size, n x n x dim or, for proxies, n x classes x dim.
  void plain();
  double plain_flops() const { return flops_of(proxies_ ? columns_ : shape_.rows); }

  // FLOP of the products that the definition needs, without the rows that sparse_bytes() counts.
  double useful_flops() const;
  // Bytes of a sparse gradient: for every number one row of E or of the memory, and one more row
  // for its column; plus the row of the gradient. 0 if the gradient is dense.
  double sparse_bytes() const;

 private:
  double flops_of(std::int64_t columns) const;

  const Context& context_;
  const LossInput<float>& in_;
  LossOutput<float>& out_;
  LossShape shape_;
  bool proxies_;
  int width_;  // numbers per row of a sparse gradient; 0: dense
  std::int64_t columns_;
  SimilarityMatrix<float> similarity_;
  SparseGradient<float> sparse_;
  Memory matrix_;  // for proxies
};

}  // namespace rk
