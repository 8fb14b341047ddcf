// The step between measure() and row() of a loss with coupled rows: each row's stats, their totals
// in a fixed order, and what follows from these (kernels/rows/batch_numbers.h), on either device;
// the host does not read them.
#pragma once

#include "kernels/blocks/matrix_block.h"
#include "kernels/launch.h"
#include "kernels/rows/finish_rows.h"
#include "losses/frame/loss.h"

#include <cstdint>

namespace rk {

template <class S, class Row> class RowTotals {
 public:
  using Params = typename Row::Params;

  // Tells `params` where row() will find slopes.
  void allocate(const Context& context, const LossShape& shape, Params& params) {
    width_ = Row::stats(params);
    const std::int64_t slopes = Row::slopes(params, static_cast<int>(shape.rows));
    stats_ = context.allocate<S>(shape.rows * width_);
    totals_ = context.allocate<double>(width_);
    slopes_ = context.allocate<S>(slopes);
    part_ = context.allocate<double>(1);
    if constexpr (requires { Row::place(params, this->slopes()); }) {
      Row::place(params, this->slopes());
    }
  }

  int width() const { return width_; }
  S* stats() const { return stats_.as<S>(); }  // [rows, width], written by the rows
  S* slopes() const { return slopes_.as<S>(); }
  double* part() const { return part_.as<double>(); }  // the part of the loss not in the rows

  // Computes from the stats the totals, and from these the slopes, the part, and the members of
  // `params` that depend on them.
  void finish(const Context& context, int rows, const BatchNumbers* numbers, Params* params) const {
    auto* totals = totals_.as<double>();
    launch(context, ColumnSums<S, double>{rows, width_, stats(), totals});
    launch(context, FinishRows<Row>{numbers, totals, params, slopes(), part()});
  }

  std::int64_t bytes() const {
    return static_cast<std::int64_t>(stats_.bytes() + totals_.bytes() + slopes_.bytes() +
                                     part_.bytes());
  }

 private:
  int width_ = 0;
  Memory stats_, totals_, slopes_, part_;
};

}  // namespace rk
