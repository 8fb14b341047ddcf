// A loss whose rows are independent: similarities, one row kernel, gradient. What a loss of this kind
// says of itself is a Formula:
//   using Row = SmoothApRow<S>;                 the kernel
//   Row::Params params;
//   std::int64_t valid(const BatchIndex&);      queries that count
//   bool counts(const BatchIndex&, int row);    whether this one does
//   double value_weight(const BatchIndex&);          loss = value_weight * sum of the rows' losses
//   S grad_weight(const BatchIndex&);           the same for the gradient, where a paper's code differs
//   std::int64_t scratch(columns, members);
#pragma once

#include "kernels/rows_cpu.h"
#include "losses/batch_index.h"
#include "losses/similarity.h"

#include <algorithm>
#include <vector>

namespace rk {

// The usual case: a mean over the queries with a positive.
template <class S>
struct MeanOverQueries {
  std::int64_t valid(const BatchIndex& index) const { return index.with_positive(); }
  bool counts(const BatchIndex& index, int row) const { return index.positives(row) > 0; }
  double value_weight(const BatchIndex& index) const {
    return 1 / static_cast<double>(valid(index));
  }
  S grad_weight(const BatchIndex& index) const { return static_cast<S>(value_weight(index)); }
};

// The same for losses that also need a negative.
template <class S>
struct MeanOverQueriesWithNegative {
  std::int64_t valid(const BatchIndex& index) const { return index.with_both(); }
  bool counts(const BatchIndex& index, int row) const {
    return index.positives(row) > 0 && index.negatives(row) > 0;
  }
  double value_weight(const BatchIndex& index) const {
    return 1 / static_cast<double>(valid(index));
  }
  S grad_weight(const BatchIndex& index) const { return static_cast<S>(value_weight(index)); }
};

template <class S, class Formula>
class RowLoss final : public Loss<S> {
 public:
  explicit RowLoss(const Formula& formula) : formula_(formula) {}

  void plan(const Context& context, const LossShape& shape) override {
    index_.plan(shape);
    similarity_.plan(shape);
    losses_.resize(static_cast<std::size_t>(shape.rows));
    const auto columns = static_cast<int>(shape.rows + shape.memory);
    scratch_bytes_ = formula_.scratch(columns, columns);
    threads_ = context.threads();
    scratch_ = Buffer(static_cast<std::size_t>(scratch_bytes_ * threads_));
  }

  void run(const Context& context, const LossInput<S>& input, LossOutput<S>& output) override {
    check_finite(context, input);
    index_.build(input);
    output.valid_queries = formula_.valid(index_);
    output.loss = 0;
    if (output.valid_queries == 0) {
      std::fill_n(output.grad, input.rows * input.dim, S(0));
      return;
    }
    similarity_.forward(context, input);
    const S grad_weight = formula_.grad_weight(index_);
    run_rows(std::min(threads_, context.threads()), input.rows, scratch_.as<std::byte>(),
             scratch_bytes_, [&](const SerialTeam& team, std::int64_t query, std::byte* scratch) {
               const int row = static_cast<int>(query);
               S* scores = similarity_.row(query);
               S& loss = losses_[static_cast<std::size_t>(query)];
               if (!formula_.counts(index_, row)) {
                 std::fill_n(scores, index_.columns(), S(0));
                 loss = 0;
                 return;
               }
               GalleryRow<S> in = index_.row<S>(row);
               in.scores = scores;
               in.weight = grad_weight;
               Formula::Row::row(team, formula_.params, in, scores, &loss, scratch);
             });
    double total = 0;
    for (std::int64_t i = 0; i < input.rows; ++i) total += losses_[static_cast<std::size_t>(i)];
    output.loss = total * formula_.value_weight(index_);
    similarity_.backward(context, input, output.grad);
  }

  std::int64_t bytes() const override {
    return index_.bytes() + similarity_.bytes() + static_cast<std::int64_t>(scratch_.bytes()) +
           static_cast<std::int64_t>(losses_.size() * sizeof(S));
  }

 private:
  Formula formula_;
  BatchIndex index_;
  SimilarityMatrix<S> similarity_;
  std::vector<S> losses_;
  Buffer scratch_;
  std::int64_t scratch_bytes_ = 0;
  int threads_ = 1;
};

}  // namespace rk
