// The kernels between and behind the rows of a loss on a GPU, one block each: what follows from the
// totals over all rows (kernels/rows/batch_numbers.h), and the value of the loss.
#pragma once

#include "kernels/block_team.h"
#include "kernels/rows/batch_numbers.h"

namespace rk {

template <class Row> struct FinishRows {
  const BatchNumbers* batch = nullptr;  // [1]
  const double* totals = nullptr;       // [stats]
  typename Row::Params* params = nullptr;
  float* slopes = nullptr;
  double* part = nullptr;  // [1]

  int blocks() const { return 1; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    if (batch->valid > 0) {
      Row::finish(BlockTeamOver<Block>(block), *batch, totals, params, slopes, part);
    }
  }
};

// loss[0] = part + value_weight * the sum of the rows' losses; 0 where no query is valid.
// Comparisons drop NaN, so many losses of NaN embeddings are finite; their gradient is not, even
// where it is zero times an embedding. The loss is NaN where `gradient`, that of one item or proxy,
// holds a number that is not finite.
struct SumLosses {
  const BatchNumbers* batch = nullptr;  // [1]
  const float* losses = nullptr;        // [rows]
  int rows = 0;
  const double* part = nullptr;     // [1], or null
  const float* gradient = nullptr;  // [dim]
  int dim = 0;
  double* loss = nullptr;  // [1]

  int blocks() const { return 1; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const BlockTeamOver<Block> team(block);
    const double total = team.sum(rows, [&](int i) { return static_cast<double>(losses[i]); });
    // x - x is NaN where x is not finite, else 0.
    const double finite =
        team.sum(dim, [&](int i) { return static_cast<double>(gradient[i] - gradient[i]); });
    team.for_each(1, [&](int) {
      const double begin = part != nullptr ? *part : 0;
      *loss = finite + (batch->valid > 0 ? begin + batch->value_weight * total : 0);
    });
  }
};

}  // namespace rk
