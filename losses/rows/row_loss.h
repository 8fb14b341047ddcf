// A loss computed row by row: similarities, one row kernel, gradient; on either device. A
// RowFormula (losses/rows/row_formula.h) describes a loss of this kind.
//
// If rows are coupled by sums over all of them (counts, histograms), Row::measure writes a row's
// stats, which are added up in the order of the rows; Row::finish (kernels/rows/batch_numbers.h)
// computes from the totals what the rows need; only then does Row::row run
// (losses/rows/row_totals.h).
// Rows that depend on their hardest pair alone take a shorter way on the CPU
// (losses/rows/make_rows.h). Rows of unequal cost have Row::work(columns, positives), the number of
// scores they compare or sigmoids they compute; the CPU's threads then get rows of about the same
// total work instead of the same number of rows.
#pragma once

#include "kernels/launch.h"
#include "kernels/rows/batch_numbers.h"
#include "kernels/rows/finish_rows.h"
#include "losses/frame/batch_index.h"
#include "losses/frame/device_batch.h"
#include "losses/frame/entry.h"
#include "losses/frame/pending_loss.h"
#include "losses/products/similarity.h"
#include "losses/rows/make_rows.h"
#include "losses/rows/row_formula.h"
#include "losses/rows/row_totals.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace rk {

// For a registry entry: how many scores of a row have a gradient; 0: any number.
template <class Formula>
inline constexpr int kScoresWithGradient = kPairRow<typename Formula::Row, float> ? 2 : 0;

template <class S, class Formula> class RowLoss final : public Loss<S> {
 public:
  explicit RowLoss(Formula formula) : formula_(std::move(formula)) {}

  void allocate(const Context& context, const LossShape& shape) override {
    index_.allocate(shape);
    batch_.allocate(context, shape, sizeof(Params));
    similarity_.allocate(context, shape);
    losses_ = context.allocate<S>(shape.rows);
    loss_.allocate(context);
    formula_.allocate(context, shape);
    if constexpr (kMeasured) totals_.allocate(context, shape, formula_.params);
    rows_ = make_rows<S, Row>(context, formula_.params, shape);
    if constexpr (kUnevenWork) work_.resize(static_cast<std::size_t>(shape.rows + 1));
  }

  void prepare(const Context& context, const LossInput<S>& input) override {
    index_.build(input);
    valid_ = formula_.valid(index_);
    formula_.begin(index_);
    const BatchNumbers numbers = {.valid = static_cast<double>(valid_),
                                  .positive_pairs = static_cast<double>(index_.positive_pairs()),
                                  .negative_pairs = static_cast<double>(index_.negative_pairs()),
                                  .value_weight = valid_ > 0 ? formula_.value_weight(index_) : 0};
    const S weight = valid_ > 0 ? formula_.grad_weight(index_) : S(0);
    batch_.pack(context, index_, weight, numbers, std::as_bytes(std::span(&formula_.params, 1)),
                [&](int row) { return valid_ > 0 && formula_.counts(index_, row); });
    if constexpr (kUnevenWork) add_up_work();
  }

  void fetch(const Context& context) override { loss_.fetch(context, valid_); }
  LossValue take() override {
    const auto [loss, valid] = loss_.take();
    return {.loss = loss, .valid_queries = valid};
  }
  const double* device_ptr() const override { return loss_.device_ptr(); }

  std::int64_t bytes() const override {
    return index_.bytes() + batch_.bytes() + similarity_.bytes() + rows_->bytes() +
           totals_.bytes() + loss_.bytes() + formula_.bytes() +
           static_cast<std::int64_t>(losses_.bytes() + work_.size() * sizeof(std::int64_t));
  }

  std::int64_t numbers_per_row() const override {
    if constexpr (kMeasured) return Row::stats(formula_.params);
    return 0;
  }

 protected:
  void compute(const Context& context, const LossInput<S>& input,
               const LossGradients<S>& gradients) override {
    similarity_.forward(context, input);
    typename Rows<S, Row>::Batch batch{batch_.rows()};
    batch.scores = similarity_.row(0);
    batch.stride = similarity_.stride();
    batch.losses = losses_.as<S>();
    auto* params = static_cast<Params*>(batch_.params());
    batch.params = params;
    batch.work = kUnevenWork ? work_.data() : nullptr;
    if constexpr (kMeasured) {
      rows_->measure(context, batch, totals_.stats(), totals_.width());
      finish(context, batch, params);
    }
    rows_->run(context, batch, input, similarity_, gradients.grad);
    launch(context, SumLosses<S>{.batch = batch_.numbers(),
                                 .losses = batch.losses,
                                 .rows = batch.rows,
                                 .part = kMeasured ? totals_.part() : nullptr,
                                 // Of the first item: a non-finite embedding enters the
                                 // gradients of all items.
                                 .gradient = gradients.grad,
                                 .dim = input.rows > 0 ? static_cast<int>(input.dim) : 0,
                                 .loss = loss_.device_ptr()});
  }

 private:
  using Row = typename Formula::Row;
  using Params = typename Row::Params;
  static_assert(std::is_trivially_copyable_v<Params>);
  static constexpr bool kMeasured = MeasuredRow<Row>;
  static constexpr bool kUnevenWork = requires { Row::work(std::int64_t{}, std::int64_t{}); };

  // Every row costs `columns` for the pass over its scores or, if it does not count, over the zeros
  // that fill it.
  void add_up_work() {
    work_[0] = 0;
    for (int i = 0; i < index_.rows(); ++i) {
      const std::int64_t columns = index_.columns();
      const std::int64_t own =
          formula_.counts(index_, i) ? Row::work(columns, index_.positives(i)) : 0;
      const auto at = static_cast<std::size_t>(i);
      work_[at + 1] = work_[at] + columns + own;
    }
  }

  void finish(const Context& context, const RowBatch<S>& batch, Params* params) {
    if constexpr (requires { &Formula::finish; }) {
      formula_.finish(context, batch, totals_.stats(), totals_.slopes(), totals_.part());
    } else {
      totals_.finish(context, batch.rows, batch_.numbers(), params);
      formula_.fill(context, totals_.slopes());
    }
  }

  Formula formula_;
  BatchIndex index_;
  DeviceBatch<S> batch_;
  SimilarityMatrix<S> similarity_;
  std::unique_ptr<Rows<S, Row>> rows_;
  RowTotals<S, Row> totals_;        // used if kMeasured
  std::vector<std::int64_t> work_;  // [rows + 1], if kUnevenWork: total work of the rows before
  Memory losses_;                   // [rows]
  PendingLoss<double> loss_;
  std::int64_t valid_ = 0;
};

// For a registry entry: kFormula makes the formula from the parameters' values.
template <class S, auto kFormula> std::unique_ptr<Loss<S>> make_row_loss(const LossValues& values) {
  auto formula = kFormula(values);
  return std::make_unique<RowLoss<S, decltype(formula)>>(std::move(formula));
}

}  // namespace rk
