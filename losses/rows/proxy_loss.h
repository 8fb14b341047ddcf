// A loss with learnable class proxies, raw vectors of any length that the loss normalises, computed
// on the rows of the similarities to them, on either device. A label is the row of its proxy; all
// items are valid. A loss of this kind consists of its row (kernels/rows/proxy_batch.h) and the
// row's parameters. If rows are items, the loss is the mean of their losses; if rows are classes,
// it is the sum, and the weight of a row's negative part is 1 / C. Proxies need a learning rate of
// their own: 100 times the network's in the papers.
#pragma once

#include "engine/base/error.h"
#include "engine/device/packed_memory.h"
#include "kernels/launch.h"
#include "kernels/rows/finish_rows.h"
#include "losses/frame/entry.h"
#include "losses/frame/pending_loss.h"
#include "losses/products/proxy_matrix.h"
#include "losses/rows/proxy_row_runner.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

namespace rk {

template <class S, class Row> class ProxyLoss final : public Loss<S> {
 public:
  using Params = typename Row::Params;
  explicit ProxyLoss(const Params& params) : params_(params) {}

  void allocate(const Context& context, const LossShape& shape) override {
    allocated_ = shape;
    const std::int64_t rows = rows_of(shape);
    const std::int64_t columns = Row::kRowIsClass ? shape.rows : shape.classes;
    matrix_.allocate(context, shape);
    losses_ = context.allocate<S>(rows);
    rows_.emplace(context, static_cast<int>(rows), static_cast<int>(columns));
    packed_ = PackedMemory();
    numbers_ = packed_.add(sizeof(BatchNumbers));
    labels_ = packed_.add(static_cast<std::size_t>(shape.rows) * sizeof(std::int64_t));
    shares_ = packed_.add(static_cast<std::size_t>(shape.classes) * sizeof(S));
    packed_.allocate(context);
    result_.allocate(context);
  }

  void prepare(const Context& context, const LossInput<S>& input) override {
    expect(input.rows <= allocated_.rows && input.classes <= allocated_.classes,
           "[loss] expected at most {} rows and {} classes as allocated, got {} and {}",
           allocated_.rows, allocated_.classes, input.rows, input.classes);
    check_proxy_labels(input.rows, input.labels, input.classes);
    packed_.begin();
    items_ = input.rows;
    // Losses of classes are already weighted; those of items are averaged.
    const double weight = Row::kRowIsClass ? 1 : mean_weight(items_);
    *packed_.host<BatchNumbers>(numbers_) = {.valid = static_cast<double>(items_),
                                             .value_weight = weight};
    std::copy_n(input.labels, items_, packed_.host<std::int64_t>(labels_));
    S* shares = packed_.host<S>(shares_);
    std::fill_n(shares, input.classes, S(0));
    for (std::int64_t i = 0; i < items_; ++i) shares[input.labels[i]] = 1;
    const auto present = static_cast<S>(std::count(shares, shares + input.classes, S(1)));
    for (std::int64_t c = 0; c < input.classes; ++c) {
      shares[c] = shares[c] > 0 ? 1 / present : S(0);
    }
    packed_.send(context);
  }

  void fetch(const Context& context) override { result_.fetch(context, items_); }
  LossValue take() override {
    const auto [result, items] = result_.take();
    ProxyMatrix<S>::check(result.bad);
    return {.loss = result.loss, .valid_queries = items};
  }
  const double* device_ptr() const override { return &result_.device_ptr()->loss; }

  std::int64_t bytes() const override {
    return matrix_.bytes() + rows_->bytes() + packed_.bytes() + result_.bytes() +
           static_cast<std::int64_t>(losses_.bytes());
  }

 protected:
  void compute(const Context& context, const LossInput<S>& input,
               const LossGradients<S>& gradients) override {
    Result* result = result_.device_ptr();
    matrix_.forward(context, input, &result->bad);
    ProxyBatch<S> batch;
    batch.scores = matrix_.row(0);
    batch.stride = matrix_.stride();
    batch.rows = static_cast<int>(Row::kRowIsClass ? input.classes : input.rows);
    batch.columns = static_cast<int>(Row::kRowIsClass ? input.rows : input.classes);
    batch.labels = packed_.device<std::int64_t>(labels_);
    batch.shares = packed_.device<S>(shares_);
    batch.weight = Row::kRowIsClass ? 1 / static_cast<S>(input.classes)
                                    : static_cast<S>(mean_weight(input.rows));
    batch.losses = losses_.as<S>();
    rows_->run(context, batch, params_);
    matrix_.backward(context, input, gradients);
    launch(context, SumLosses<S>{.batch = packed_.device<BatchNumbers>(numbers_),
                                 .losses = batch.losses,
                                 .rows = batch.rows,
                                 // Of the first proxy: a non-finite embedding enters the
                                 // gradients of all proxies.
                                 .gradient = gradients.grad_proxies,
                                 .dim = input.classes > 0 ? static_cast<int>(input.dim) : 0,
                                 .refused = &result->bad.what,
                                 .loss = &result->loss});
  }

 private:
  // What take() reads.
  struct Result {
    double loss = 0;
    BadProxy bad;
  };

  static double mean_weight(std::int64_t items) {
    return items > 0 ? 1 / static_cast<double>(items) : 0;
  }
  static std::int64_t rows_of(const LossShape& shape) {
    return Row::kRowIsClass ? shape.classes : shape.rows;
  }

  Params params_;
  LossShape allocated_;
  std::int64_t items_ = 0;
  ProxyMatrix<S> matrix_{Row::kRowIsClass};
  std::optional<ProxyRowRunner<S, Row>> rows_;
  std::size_t numbers_ = 0, labels_ = 0, shares_ = 0;  // offsets in packed_
  PackedMemory packed_;
  Memory losses_;  // [rows]
  PendingLoss<Result> result_;
};

// For a registry entry: kParams makes the row's parameters from the loss's values.
template <class S, template <class> class Row, auto kParams>
std::unique_ptr<Loss<S>> make_proxy_loss(const LossValues& values) {
  return std::make_unique<ProxyLoss<S, Row<S>>>(kParams(values));
}

}  // namespace rk
