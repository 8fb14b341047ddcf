// The rows of a batch on a context's device: over the cores of the CPU, a SerialTeam each
// (kernels/cpu/rows_cpu.h), or a block of a GPU each (kernels/cuda/rows.h). Everything lies in the
// device's memory, the rows' parameters too.
#pragma once

#include "engine/device/context.h"
#include "kernels/cpu/rows_cpu.h"
#include "kernels/cuda/rows.h"
#include "losses/frame/loss.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace rk {

// Room for the scratch of all rows that run at once, on the CPU one to a thread.
class RowMemory {
 public:
  // plan_device(RowScratch*): fills everything but the pointer.
  template <class PlanDevice>
  void plan(const Context& context, std::int64_t row_bytes, PlanDevice&& plan_device) {
    scratch_ = {};
    if (context.on_gpu()) {
      plan_device(&scratch_);
    } else {
      scratch_.blocks = context.threads();
      scratch_.global_bytes = row_bytes;
    }
    memory_ = context.allocate(static_cast<std::size_t>(scratch_.blocks * scratch_.global_bytes));
    scratch_.global = memory_.data();
  }
  const RowScratch& scratch() const { return scratch_; }

  // On the CPU: f(team, row, scratch) for every row. `work`: as for run_rows.
  template <class F>
  void run(const Context& context, std::int64_t rows, const std::int64_t* work, F&& f) const {
    run_rows(std::min(scratch_.blocks, context.threads()), rows, work, scratch_.global,
             scratch_.global_bytes, f);
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.bytes()); }

 private:
  RowScratch scratch_;
  Memory memory_;
};

template <class S, class Row> class Rows {
 public:
  using Params = typename Row::Params;

  void plan(const Context& context, const Params& params, const LossShape& shape) {
    const auto rows = static_cast<int>(shape.rows);
    const auto columns = static_cast<int>(shape.rows + shape.memory);
    memory_.plan(context, scratch_of<Row>(params, columns, columns), [&](RowScratch* scratch) {
      if constexpr (kRunsOnGpu<S>) GalleryRows<Row>::plan(params, rows, columns, scratch);
    });
  }

  // `work` is the CPU's: threads get rows of about the same work instead of the same number.
  void measure(const Context& context, const RowBatch<S>& batch, const Params* params, S* stats,
               int width, const std::int64_t* work) const {
    if constexpr (kRunsOnGpu<S>) {
      if (context.on_gpu()) {
        return GalleryRows<Row>::measure(batch, params, stats, width, memory_.scratch(),
                                         context.stream());
      }
    }
    for_each(context, batch, work,
             [&](const SerialTeam& team, const GalleryRow<S>& in, std::byte* scratch) {
               measure_row<Row>(team, batch, *params, in, stats, width, scratch);
             });
  }

  // Returns how many numbers of the gradient are not 0; on a GPU, which keeps that to itself, all.
  std::int64_t run(const Context& context, const RowBatch<S>& batch, const Params* params,
                   const std::int64_t* work) const {
    if constexpr (kRunsOnGpu<S>) {
      if (context.on_gpu()) {
        GalleryRows<Row>::run(batch, params, memory_.scratch(), context.stream());
        return std::int64_t{batch.rows} * batch.columns;
      }
    }
    std::atomic<std::int64_t> numbers = 0;
    for_each(context, batch, work,
             [&](const SerialTeam& team, const GalleryRow<S>& in, std::byte* scratch) {
               run_row<Row>(team, batch, *params, in, scratch);
               numbers.fetch_add(
                   drop_tiny(team, batch.scores + in.self * batch.stride, pad(in.columns)),
                   std::memory_order_relaxed);
             });
    return numbers;
  }

  // On the CPU: f(team, row, scratch), the rows that do not count among them.
  template <class F>
  void for_each(const Context& context, const RowBatch<S>& batch, const std::int64_t* work,
                F&& f) const {
    const S weight = *batch.weight;
    memory_.run(context, batch.rows, work,
                [&](const SerialTeam& team, std::int64_t row, std::byte* scratch) {
                  f(team, batch.row(static_cast<int>(row), weight), scratch);
                });
  }

  std::int64_t bytes() const { return memory_.bytes(); }

 private:
  // Numbers of a gradient below 1e-31 become 0: the products that follow do not flush denormals as
  // rows do, and one that meets an embedding's number below 1e-7 costs them a hundred cycles.
  // Returns how many are left.
  static int drop_tiny(const SerialTeam& team, S* grad, int count) {
    constexpr S kLeast = std::numeric_limits<S>::min() / std::numeric_limits<S>::epsilon();
    return team.sum(count, [&](int k) {
      const bool tiny = std::abs(grad[k]) < kLeast;  // NaN is not
      grad[k] = tiny ? S(0) : grad[k];
      return tiny ? 0 : 1;
    });
  }

  RowMemory memory_;
};

}  // namespace rk
