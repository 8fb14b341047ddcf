// Sums over the rows of a matrix, in double and in an order that depends only on the number of
// rows.
#pragma once

#include "engine/device/context.h"
#include "kernels/cuda/column_sums.h"
#include "kernels/launch_on_gpu.h"

#include <algorithm>

namespace rk {

// totals[k] = the sum over rows of values[row, k].
template <class S>
void sum_rows(const Context& context, const S* values, int rows, int columns, double* totals) {
  if constexpr (kRunsOnGpu<S>) {
    if (context.on_gpu()) return column_sums(values, rows, columns, totals, context.stream());
  }
  std::fill_n(totals, columns, 0.0);
  for (int row = 0; row < rows; ++row, values += columns) {
    for (int k = 0; k < columns; ++k) totals[k] += static_cast<double>(values[k]);
  }
}

}  // namespace rk
