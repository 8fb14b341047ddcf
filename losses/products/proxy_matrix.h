// Similarities of a batch to normalised class proxies w/|w|, and the backward pass to both, on
// either device.
//   items_by_classes:  S (N, C) = E W^T       dE = G W,    dW = G^T E
//   classes_by_items:  S (C, N) = W E^T       dE = G^T W,  dW = G E
// then dw = (dW - (dW . w/|w|) w/|w|) / |w|. Only one matrix is kept: the gradient overwrites the
// rows.
//
// A proxy of zeros has no direction; forward() reports it, or a proxy that is not finite, in `bad`,
// and check() throws. On a GPU a proxy of zeros makes the matrix NaN.
#pragma once

#include "kernels/blocks/proxy_check_block.h"
#include "losses/frame/loss.h"

#include <cstdint>

namespace rk {

// Throws InputError naming the first label that is not a row of the proxies.
void check_proxy_labels(std::int64_t rows, const std::int64_t* labels, std::int64_t classes);

template <class S> class ProxyMatrix {
 public:
  explicit ProxyMatrix(bool classes_by_items) : classes_by_items_(classes_by_items) {}

  void allocate(const Context& context, const LossShape& shape);
  // bad: in the context's memory; set to what is wrong with the proxies.
  void forward(const Context& context, const LossInput<S>& input, BadProxy* bad);
  void backward(const Context& context, const LossInput<S>& input,
                const LossGradients<S>& gradients);
  // Throws InputError if something is wrong.
  static void check(const BadProxy& bad);

  S* row(std::int64_t index) { return matrix_.as<S>() + index * stride_; }
  std::int64_t stride() const { return stride_; }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(matrix_.bytes() + proxies_.bytes() + lengths_.bytes());
  }

 private:
  void normalise(const Context& context, const LossInput<S>& input, BadProxy* bad);
  void through_lengths(const Context& context, const LossInput<S>& input, S* grad_proxies);

  bool classes_by_items_;
  Memory matrix_;
  Memory proxies_;  // of unit length, [C, D]
  Memory lengths_;  // double [C]
  std::int64_t stride_ = 0;
  LossShape allocated_;
};

}  // namespace rk
