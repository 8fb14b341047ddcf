// Rows on the cores of the CPU, one SerialTeam per row (kernels/cpu/rows.h).
#pragma once

#include "kernels/cpu/rows.h"
#include "kernels/rows/batch_numbers.h"
#include "losses/rows/rows.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rk {

// Scratch of all rows that run at once, one to a thread.
class ThreadScratch {
 public:
  ThreadScratch(const Context& context, std::int64_t row_bytes)
      : threads_(context.threads()),
        bytes_(row_bytes),
        memory_(context.allocate<std::byte>(threads_ * bytes_)) {}

  // Calls f(team, row, scratch) for every row. `work`: as for run_rows.
  template <class F>
  void run(const Context& context, std::int64_t rows, const std::int64_t* work, F&& f) const {
    run_rows(std::min(threads_, context.threads()), rows, work, memory_.data(), bytes_, f);
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.bytes()); }

 private:
  int threads_;
  std::int64_t bytes_;
  Memory memory_;
};

template <class S, class Row> class CpuRows : public Rows<S, Row> {
 public:
  using typename Rows<S, Row>::Batch;
  using typename Rows<S, Row>::Params;

  CpuRows(const Context& context, const Params& params, const LossShape& shape)
      : scratch_(context, scratch_of<Row>(params, static_cast<int>(shape.rows + shape.memory),
                                          static_cast<int>(shape.rows + shape.memory))) {}

  void measure(const Context& context, const Batch& batch, S* stats, int width) override {
    if constexpr (MeasuredRow<Row>) {
      for_each(context, batch,
               [&](const SerialTeam& team, const GalleryRow<S>& in, std::byte* scratch) {
                 measure_row<Row>(team, batch, *batch.params, in, stats, width, scratch);
               });
    }
  }

  void run(const Context& context, const Batch& batch, const LossInput<S>& input,
           SimilarityMatrix<S>& similarity, S* grad) override {
    std::atomic<std::int64_t> nonzeros = 0;  // non-zeros of the gradient
    for_each(context, batch,
             [&](const SerialTeam& team, const GalleryRow<S>& in, std::byte* scratch) {
               run_row<Row>(team, batch, *batch.params, in, scratch);
               nonzeros.fetch_add(
                   drop_tiny(team, batch.scores + in.self * batch.stride, pad(in.columns)),
                   std::memory_order_relaxed);
             });
    similarity.backward(context, input, nonzeros, grad);
  }

  std::int64_t bytes() const override { return scratch_.bytes(); }

 protected:
  // Calls f(team, row, scratch) for every row, including rows that do not count.
  template <class F> void for_each(const Context& context, const Batch& batch, F&& f) const {
    const S weight = *batch.weight;
    scratch_.run(context, batch.rows, batch.work,
                 [&](const SerialTeam& team, std::int64_t row, std::byte* scratch) {
                   f(team, batch.row(static_cast<int>(row), weight), scratch);
                 });
  }

 private:
  // Replaces numbers of a gradient below 1e-31 by 0: the products that follow do not flush
  // denormals as rows do, and such a number times an embedding's number below 1e-7 costs them a
  // hundred cycles. Returns how many non-zeros remain.
  static int drop_tiny(const SerialTeam& team, S* grad, int count) {
    constexpr S kLeast = std::numeric_limits<S>::min() / std::numeric_limits<S>::epsilon();
    return team.sum(count, [&](int k) {
      const bool tiny = std::abs(grad[k]) < kLeast;  // false for NaN
      grad[k] = tiny ? S(0) : grad[k];
      return tiny ? 0 : 1;
    });
  }

  ThreadScratch scratch_;
};

}  // namespace rk
