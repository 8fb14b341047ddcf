#include "tools/bench/loss_products.h"

#include "engine/device/gemm.h"

#include <cstddef>

namespace rk {

LossProducts::LossProducts(const Context& context, const LossInput<float>& input,
                           LossOutput<float>& output, const LossShape& shape,
                           const LossEntry& entry)
    : context_(context),
      in_(input),
      out_(output),
      shape_(shape),
      proxies_(entry.kind == LossKind::kProxies),
      width_(context.on_gpu() ? 0 : entry.scores_with_gradient),
      columns_(proxies_ ? shape.classes : shape.rows + shape.memory) {
  if (proxies_) {
    matrix_ = context.allocate<float>(shape.rows * columns_);
    return;
  }
  similarity_.allocate(context, shape);
  similarity_.forward(context, input);
  if (width_ == 0) return;
  sparse_.allocate(shape, width_);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    for (int k = 0; k < width_; ++k) {
      const std::int64_t column = (i + 1 + k * columns_ / width_) % columns_;
      sparse_.row(i)[k] = {static_cast<std::int32_t>(column), 1.0F};
    }
  }
}

void LossProducts::run() {
  const std::int64_t n = shape_.rows;
  const std::int64_t d = shape_.dim;
  float* grad = out_.grad;
  if (proxies_) {
    const Factor<float> scores{matrix_.as<float>(), n, columns_, columns_};
    const Factor<float> items{in_.embeddings, n, d, d}, proxies{in_.proxies, columns_, d, d};
    gemm(context_,
         {.a = items, .b = transposed(proxies), .c = {matrix_.as<float>(), n, columns_, columns_}});
    gemm(context_, {.a = scores, .b = proxies, .c = {grad, n, d, d}});
    gemm(context_, {.a = transposed(scores), .b = items, .c = {out_.grad_proxies, columns_, d, d}});
    return;
  }
  similarity_.forward(context_, in_);
  if (width_ > 0) {
    sparse_.backward(context_, in_, grad);
    return;
  }
  plain();
  if (shape_.memory == 0) return;
  gemm(context_, {.a = {similarity_.row(0) + n, n, shape_.memory, similarity_.stride()},
                  .b = {in_.memory_embeddings, shape_.memory, d, d},
                  .c = {grad, n, d, d},
                  .accumulate = true});
}

void LossProducts::plain() {
  const std::int64_t n = shape_.rows;
  const std::int64_t d = shape_.dim;
  const Matrix<float> grad{out_.grad, n, d, d};
  if (proxies_) {
    gemm(context_, {.a = {matrix_.as<float>(), n, columns_, columns_},
                    .b = {in_.proxies, columns_, d, d},
                    .c = grad});
  } else {
    gemm(context_, {.a = {similarity_.row(0), n, n, similarity_.stride()},
                    .b = {in_.embeddings, n, d, d},
                    .c = grad});
  }
}

double LossProducts::useful_flops() const {
  if (proxies_) return 3 * flops_of(columns_);
  const double forward = flops_of(shape_.rows) / 2 + flops_of(shape_.memory);
  return width_ > 0 ? forward : forward + flops_of(columns_);
}

double LossProducts::sparse_bytes() const {
  const double rows = static_cast<double>(shape_.rows) * (2 * width_ + 1);
  return width_ > 0 ? sizeof(float) * rows * static_cast<double>(shape_.dim) : 0;
}

double LossProducts::flops_of(std::int64_t columns) const {
  return 2.0 * static_cast<double>(shape_.rows * columns) * static_cast<double>(shape_.dim);
}

}  // namespace rk
