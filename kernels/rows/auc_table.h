// The coefficients behind AucGradient (kernels/rows/auc_row.h): with slope[m] = dLoss/d(sum of sg_r
// at t_m),
//   dLoss/ds = sum over m of slope[m] r sg_r'(s, t_m)
// is one smooth function of s for positive pairs and one for negative pairs, a polynomial in each
// interval. The caller provides the polynomials of r sg_r' around one threshold, which depend on r
// and ds alone (losses/auc/auc_gradient.h); AucTable adds them up. Scores beyond the table use its
// end intervals, which are 0.
#pragma once

#include "kernels/block_team.h"
#include "kernels/launch_on_gpu.h"
#include "kernels/rows/auc_row.h"

#include <cstdint>

namespace rk {

template <class S> struct AucTable {
  static constexpr int kCoefficients = AucGradient<S>::kCoefficients;

  const double* bell = nullptr;  // [2 reach + 1, per_step]
  int reach = 0;                 // threshold steps beyond which a sigmoid is flat
  int count = 0;                 // thresholds
  int steps = 0;                 // from `reach` below the first threshold to `reach` above the last
  int per_step = 0;              // coefficients of a step: those of several whole intervals
  S* coefficients = nullptr;     // [2, steps, per_step]: positive pairs', then negative pairs'

  // Fills step s for positive (kind 0) or negative pairs (1); slopes [2 count].
  template <class Team> RK_FN void fill(const Team& team, const S* slopes, int kind, int s) const {
    const S* own = slopes + kind * count;
    const int least = s - 2 * reach;  // this step begins s - reach thresholds from the first
    const int from = least > 0 ? least : 0;
    const int end = count < s + 1 ? count : s + 1;
    S* to = coefficients + (static_cast<std::int64_t>(kind) * steps + s) * per_step;
    team.for_each(per_step, [&](int c) {
      double sum = 0;
      for (int m = from; m < end; ++m) {
        sum += static_cast<double>(own[m]) * bell[(s - m) * per_step + c];
      }
      const bool first = s == 0 && c < kCoefficients;
      const bool last = s == steps - 1 && c >= per_step - kCoefficients;
      to[c] = first || last ? S(0) : static_cast<S>(sum);
    });
  }
};

// One block per step and kind.
template <class S> struct FillAucTable {
  static constexpr bool kOnGpu = kRunsOnGpu<S>;

  AucTable<S> table;
  const S* slopes = nullptr;

  int blocks() const { return 2 * table.steps; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    table.fill(team_of(block), slopes, block.index() / table.steps, block.index() % table.steps);
  }
};

}  // namespace rk
