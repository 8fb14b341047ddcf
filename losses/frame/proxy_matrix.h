// Similarities of a batch to normalised class proxies w/|w|, and the way back to both.
//   items_by_classes:  S (N, C) = E W^T       dE = G W,    dW = G^T E
//   classes_by_items:  S (C, N) = W E^T       dE = G^T W,  dW = G E
// then dw = (dW - (dW . w/|w|) w/|w|) / |w|. One matrix is kept: rows are overwritten by their
// gradient.
#pragma once

#include "engine/device/buffer.h"
#include "losses/frame/loss.h"

#include <cstdint>
#include <vector>

namespace rk {

// InputError naming the first label that is no row of the proxies.
void check_proxy_labels(std::int64_t rows, const std::int64_t* labels, std::int64_t classes);
// InputError: of a proxy of zeros.
[[noreturn]] void fail_without_direction(std::int64_t proxy);

template <class S> class ProxyMatrix {
 public:
  explicit ProxyMatrix(bool classes_by_items) : classes_by_items_(classes_by_items) {}

  void plan(const LossShape& shape);
  // InputError where a proxy is zero or a label is no row of the proxies.
  void forward(const Context& context, const LossInput<S>& input);
  void backward(const Context& context, const LossInput<S>& input, S* grad, S* grad_proxies);

  S* row(std::int64_t index) { return matrix_.as<S>() + index * stride_; }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(matrix_.bytes() + proxies_.bytes() +
                                     lengths_.size() * sizeof(double));
  }

 private:
  bool classes_by_items_;
  Buffer matrix_;
  Buffer proxies_;  // of unit length, [C, D]
  std::vector<double> lengths_;
  std::int64_t stride_ = 0;
  LossShape planned_;
};

}  // namespace rk
