#include "losses/frame/proxy_matrix.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "kernels/team.h"
#include "losses/frame/matrix_product.h"

#include <cmath>

namespace rk {

void check_proxy_labels(std::int64_t rows, const std::int64_t* labels, std::int64_t classes) {
  for (std::int64_t i = 0; i < rows; ++i) {
    if (labels[i] >= 0 && labels[i] < classes) continue;
    fail<InputError>("labels: row {} holds {}, but there are {} proxies; number classes from 0", i,
                     labels[i], classes);
  }
}

void fail_without_direction(std::int64_t proxy) {
  fail<InputError>("proxies: row {} is zero and has no direction; initialise it otherwise", proxy);
}

template <class S> void ProxyMatrix<S>::plan(const LossShape& shape) {
  planned_ = shape;
  const std::int64_t rows = classes_by_items_ ? shape.classes : shape.rows;
  const std::int64_t columns = classes_by_items_ ? shape.rows : shape.classes;
  matrix_ = Buffer::of<S>(rows * pad(static_cast<int>(columns)));
  proxies_ = Buffer::of<S>(shape.classes * shape.dim);
  lengths_.resize(static_cast<std::size_t>(shape.classes));
}

template <class S> void ProxyMatrix<S>::forward(const Context& context, const LossInput<S>& input) {
  expect(
      input.rows <= planned_.rows && input.classes <= planned_.classes && input.dim == planned_.dim,
      "[loss] expected at most {} rows and {} classes of dimension {} as planned, got {}, {}, {}",
      planned_.rows, planned_.classes, planned_.dim, input.rows, input.classes, input.dim);
  check_proxy_labels(input.rows, input.labels, input.classes);
  const std::int64_t dim = input.dim;
  S* unit = proxies_.as<S>();
  parallel_for(context.threads(), input.classes, [&](std::int64_t c, int) {
    const S* from = input.proxies + c * dim;
    // In double, as on a GPU: no proxy but one of zeros is then so short that it has no direction.
    double square = 0;
#pragma omp simd reduction(+ : square)
    for (std::int64_t d = 0; d < dim; ++d) {
      square += static_cast<double>(from[d]) * static_cast<double>(from[d]);
    }
    const double length = std::sqrt(square);
    lengths_[static_cast<std::size_t>(c)] = length;
    const double per_length = length > 0 ? 1 / length : 0.0;
    for (std::int64_t d = 0; d < dim; ++d) {
      unit[c * dim + d] = static_cast<S>(static_cast<double>(from[d]) * per_length);
    }
  });
  for (std::int64_t c = 0; c < input.classes; ++c) {
    if (!(lengths_[static_cast<std::size_t>(c)] > 0)) fail_without_direction(c);
  }
  if (classes_by_items_) {
    stride_ = pad(static_cast<int>(input.rows));
    product_abt(context, input.classes, input.rows, dim, unit, dim, input.embeddings, dim, row(0),
                stride_);
  } else {
    stride_ = pad(static_cast<int>(input.classes));
    product_abt(context, input.rows, input.classes, dim, input.embeddings, dim, unit, dim, row(0),
                stride_);
  }
}

template <class S>
void ProxyMatrix<S>::backward(const Context& context, const LossInput<S>& input, S* grad,
                              S* grad_proxies) {
  const std::int64_t n = input.rows;
  const std::int64_t dim = input.dim;
  const S* unit = proxies_.as<S>();
  if (classes_by_items_) {
    product_atb(context, n, dim, input.classes, row(0), stride_, unit, dim, S(0), grad, dim);
    product_ab(context, input.classes, dim, n, row(0), stride_, input.embeddings, dim, S(0),
               grad_proxies, dim);
  } else {
    product_ab(context, n, dim, input.classes, row(0), stride_, unit, dim, S(0), grad, dim);
    product_atb(context, input.classes, dim, n, row(0), stride_, input.embeddings, dim, S(0),
                grad_proxies, dim);
  }
  parallel_for(context.threads(), input.classes, [&](std::int64_t c, int) {
    const S* w = unit + c * dim;
    S* to = grad_proxies + c * dim;
    S along = 0;
#pragma omp simd reduction(+ : along)
    for (std::int64_t d = 0; d < dim; ++d) along += to[d] * w[d];
    const double per_length = 1 / lengths_[static_cast<std::size_t>(c)];
    for (std::int64_t d = 0; d < dim; ++d) {
      to[d] = static_cast<S>(static_cast<double>(to[d] - along * w[d]) * per_length);
    }
  });
}

template class ProxyMatrix<float>;
template class ProxyMatrix<double>;

}  // namespace rk
