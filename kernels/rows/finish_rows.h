// One-block kernels that run between and after the row kernels of a loss: FinishRows computes what
// follows from the totals over all rows (kernels/rows/batch_numbers.h), SumLosses the loss.
#pragma once

#include "kernels/block_team.h"
#include "kernels/launch_on_gpu.h"
#include "kernels/rows/batch_numbers.h"

#include <cstdint>
#include <limits>

namespace rk {

template <class Row> struct FinishRows;
template <template <class> class Row, class S> struct FinishRows<Row<S>> {
  static constexpr bool kOnGpu = kRunsOnGpu<S>;

  const BatchNumbers* batch = nullptr;  // [1]
  const double* totals = nullptr;       // [stats]
  typename Row<S>::Params* params = nullptr;
  S* slopes = nullptr;
  double* part = nullptr;  // [1]

  int blocks() const { return 1; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    if (batch->valid > 0) {
      Row<S>::finish(team_of(block), *batch, totals, params, slopes, part);
    }
  }
};

// loss[0] = part + value_weight * the sum of the rows' losses; 0 if no query is valid. Comparisons
// drop NaN, so many losses of NaN embeddings are finite; their gradient is not, even where it is
// zero times an embedding. So the loss is NaN if `gradient`, that of one item or proxy, holds a
// non-finite number, or if `refused` says that the loss cannot take its input.
template <class S> struct SumLosses {
  static constexpr bool kOnGpu = kRunsOnGpu<S>;

  const BatchNumbers* batch = nullptr;  // [1]
  const S* losses = nullptr;            // [rows]
  int rows = 0;
  const double* part = nullptr;  // [1], or null
  const S* gradient = nullptr;   // [dim]
  int dim = 0;
  const std::int32_t* refused = nullptr;  // [1], 0: the input is accepted; or null
  double* loss = nullptr;                 // [1]

  int blocks() const { return 1; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const auto team = team_of(block);
    const double total = team.sum(rows, [&](int i) { return static_cast<double>(losses[i]); });
    // x - x is NaN where x is not finite, else 0.
    const double finite =
        team.sum(dim, [&](int i) { return static_cast<double>(gradient[i] - gradient[i]); });
    team.for_each(1, [&](int) {
      const double begin = part != nullptr ? *part : 0;
      const bool none = refused != nullptr && *refused != 0;
      *loss = (none ? std::numeric_limits<double>::quiet_NaN() : finite) +
              (batch->valid > 0 ? begin + batch->value_weight * total : 0);
    });
  }
};

}  // namespace rk
