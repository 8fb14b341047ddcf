// What a loss that is computed row by row (losses/rows/row_loss.h) adds to its row kernel: which
// queries count, and what their losses are multiplied by. A formula is one of the two means below,
// with
//   using Row = SmoothApRow<S>;   the kernel
//   Row::Params params;
// and overrides of what differs. Of coupled rows without a Row::finish the formula has
//   void finish(const Context&, const RowBatch<S>&, const S* stats, S* slopes, double* part) const
// in its place, which computes the same from each row's stats.
#pragma once

#include "engine/device/context.h"
#include "losses/frame/batch_index.h"
#include "losses/frame/loss.h"

#include <cstdint>

namespace rk {

template <class S> class RowFormula {
 public:
  virtual std::int64_t valid(const BatchIndex& index) const = 0;  // queries that count
  // Whether this query counts.
  virtual bool counts(const BatchIndex& index, int row) const = 0;
  // loss = value_weight * sum of the rows' losses. Called only if valid() > 0, as the next.
  virtual double value_weight(const BatchIndex& index) const {
    return 1 / static_cast<double>(valid(index));
  }
  // The same for the gradient; differs if a paper's code does.
  virtual S grad_weight(const BatchIndex& index) const {
    return static_cast<S>(value_weight(index));
  }
  virtual void begin(const BatchIndex&) {}  // sets params that depend on the batch

  // Reserves memory of its own, bytes() of it.
  virtual void allocate(const Context&, const LossShape&) {}
  virtual std::int64_t bytes() const { return 0; }

  // After Row::finish of coupled rows (row_loss.h): computes more from the slopes, for params.
  virtual void fill(const Context&, const S* /*slopes*/) {}

 protected:
  ~RowFormula() = default;  // held by value
};

// The usual case: a mean over the queries with a positive.
template <class S> class MeanOverQueries : public RowFormula<S> {
 public:
  std::int64_t valid(const BatchIndex& index) const override { return index.with_positive(); }
  bool counts(const BatchIndex& index, int row) const override { return index.positives(row) > 0; }
};

// The same for losses that also need a negative.
template <class S> class MeanOverQueriesWithNegative : public RowFormula<S> {
 public:
  std::int64_t valid(const BatchIndex& index) const override { return index.with_both(); }
  bool counts(const BatchIndex& index, int row) const override {
    return index.positives(row) > 0 && index.negatives(row) > 0;
  }
};

}  // namespace rk
