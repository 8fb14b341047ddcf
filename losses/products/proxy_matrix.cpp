#include "losses/products/proxy_matrix.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "kernels/blocks/l2norm_block.h"
#include "kernels/launch.h"
#include "kernels/launch_on_gpu.h"
#include "kernels/team.h"
#include "losses/frame/finite.h"
#include "losses/products/multiply.h"

#include <algorithm>
#include <cmath>

namespace rk {

void check_proxy_labels(std::int64_t rows, const std::int64_t* labels, std::int64_t classes) {
  for (std::int64_t i = 0; i < rows; ++i) {
    if (labels[i] >= 0 && labels[i] < classes) continue;
    fail<InputError>("labels: row {} holds {}, but there are {} proxies; number classes from 0", i,
                     labels[i], classes);
  }
}

template <class S> void ProxyMatrix<S>::check(const BadProxy& bad) {
  if (bad.what == BadProxy::kNotFinite) {
    fail_not_finite("proxies", bad.row, static_cast<double>(kLargestInput<S>));
  }
  if (bad.what == BadProxy::kZero) {
    fail<InputError>(
        "proxies: row {} is zero, or so short that it has no direction; initialise it otherwise",
        bad.row);
  }
}

template <class S> void ProxyMatrix<S>::allocate(const Context& context, const LossShape& shape) {
  allocated_ = shape;
  const std::int64_t rows = classes_by_items_ ? shape.classes : shape.rows;
  const std::int64_t columns = classes_by_items_ ? shape.rows : shape.classes;
  matrix_ = context.allocate<S>(rows * pad(static_cast<int>(columns)));
  // Rows load the padding after their columns.
  context.clear(matrix_.data(), matrix_.bytes());
  proxies_ = context.allocate<S>(shape.classes * shape.dim);
  lengths_ = context.allocate<double>(shape.classes);
}

template <class S>
void ProxyMatrix<S>::forward(const Context& context, const LossInput<S>& input, BadProxy* bad) {
  expect(
      input.rows <= allocated_.rows && input.classes <= allocated_.classes &&
          input.dim == allocated_.dim,
      "[loss] expected at most {} rows and {} classes of dimension {} as allocated, got {}, {}, {}",
      allocated_.rows, allocated_.classes, allocated_.dim, input.rows, input.classes, input.dim);
  normalise(context, input, bad);
  const Factor<S> proxies{proxies_.as<S>(), input.classes, input.dim, input.dim};
  const Factor<S> items{input.embeddings, input.rows, input.dim, input.dim};
  const Factor<S>& rows = classes_by_items_ ? proxies : items;
  const Factor<S>& columns = classes_by_items_ ? items : proxies;
  stride_ = pad(static_cast<int>(columns.rows));
  multiply<S>(
      context,
      {.a = rows, .b = transposed(columns), .c = {row(0), rows.rows, columns.rows, stride_}});
}

template <class S>
void ProxyMatrix<S>::normalise(const Context& context, const LossInput<S>& input, BadProxy* bad) {
  const std::int64_t dim = input.dim;
  S* unit = proxies_.as<S>();
  auto* lengths = lengths_.as<double>();
  if constexpr (kRunsOnGpu<S>) {
    if (context.on_gpu()) {
      const auto classes = static_cast<int>(input.classes), width = static_cast<int>(dim);
      // Epsilon 0: a proxy of length 0 gives NaN, here and in everything that follows.
      launch(context, L2Norm{classes, width, 0, input.proxies, unit, lengths});
      return launch(
          context, FindBadProxy{classes, width, kLargestInput<float>, input.proxies, lengths, bad});
    }
  }
  parallel_for(context.threads(), input.classes, [&](std::int64_t c, int) {
    const S* from = input.proxies + c * dim;
    double square = 0;
#pragma omp simd reduction(+ : square)
    for (std::int64_t d = 0; d < dim; ++d) {
      square += static_cast<double>(from[d]) * static_cast<double>(from[d]);
    }
    const double length = std::sqrt(square);
    lengths[c] = length;
    const double per_length = length >= kShortestProxy ? 1 / length : 0.0;
    for (std::int64_t d = 0; d < dim; ++d) {
      unit[c * dim + d] = static_cast<S>(static_cast<double>(from[d]) * per_length);
    }
  });
  // losses/frame/loss.cpp has already checked that proxies are finite.
  const double* zero = std::find_if(lengths, lengths + input.classes,
                                    [](double length) { return length < kShortestProxy; });
  *bad = {};
  if (zero < lengths + input.classes) {
    *bad = {.row = static_cast<std::int32_t>(zero - lengths), .what = BadProxy::kZero};
  }
}

template <class S>
void ProxyMatrix<S>::backward(const Context& context, const LossInput<S>& input,
                              const LossGradients<S>& gradients) {
  const std::int64_t items = input.rows, classes = input.classes, dim = input.dim;
  const Factor<S> rows{row(0), classes_by_items_ ? classes : items,
                       classes_by_items_ ? items : classes, stride_};
  const Factor<S> to_classes = classes_by_items_ ? transposed(rows) : rows;
  multiply<S>(context, {.a = to_classes,
                        .b = {proxies_.as<S>(), classes, dim, dim},
                        .c = {gradients.grad, items, dim, dim}});
  multiply<S>(context, {.a = transposed(to_classes),
                        .b = {input.embeddings, items, dim, dim},
                        .c = {gradients.grad_proxies, classes, dim, dim}});
  through_lengths(context, input, gradients.grad_proxies);
}

template <class S>
void ProxyMatrix<S>::through_lengths(const Context& context, const LossInput<S>& input,
                                     S* grad_proxies) {
  const std::int64_t dim = input.dim;
  const S* unit = proxies_.as<S>();
  const auto* lengths = lengths_.as<double>();
  if constexpr (kRunsOnGpu<S>) {
    if (context.on_gpu()) {
      return launch(context, L2NormGradient{static_cast<int>(input.classes), static_cast<int>(dim),
                                            0, input.proxies, lengths, grad_proxies, grad_proxies});
    }
  }
  parallel_for(context.threads(), input.classes, [&](std::int64_t c, int) {
    const S* w = unit + c * dim;
    S* to = grad_proxies + c * dim;
    S along = 0;
#pragma omp simd reduction(+ : along)
    for (std::int64_t d = 0; d < dim; ++d) along += to[d] * w[d];
    const double per_length = 1 / lengths[c];
    for (std::int64_t d = 0; d < dim; ++d) {
      to[d] = static_cast<S>(static_cast<double>(to[d] - along * w[d]) * per_length);
    }
  });
}

template class ProxyMatrix<float>;
template class ProxyMatrix<double>;

}  // namespace rk
