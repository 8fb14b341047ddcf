// The table behind AucGradient (kernels/rows/auc_row.h, kernels/rows/auc_table.h). Each interval's
// polynomial meets r sg_r' at the interval's Chebyshev points. Intervals are a whole fraction of ds
// wide, so all that depends on r and ds alone is made once, in plan(); fill() only adds it up.
#pragma once

#include "kernels/rows/auc_table.h"

#include <vector>

namespace rk {

template <class S> class AucGradientTable {
 public:
  // Thresholds -1 + m step, m < count.
  void plan(double r, double step, int count);
  void fill(const S* slopes);  // [2 count]: positive pairs', then negative pairs'
  // Points into the table, which plan() alone moves.
  AucGradient<S> gradient() const { return gradient_; }
  // Half of them for positive pairs, half for negative ones.
  const std::vector<S>& coefficients() const { return coefficients_; }
  // What fill() runs on: all of it in this object's memory.
  AucTable<S> table();
  const std::vector<double>& bell() const { return bell_; }

 private:
  static constexpr int kCoefficients = AucGradient<S>::kCoefficients;

  int reach_ = 0;   // steps beyond which a sigmoid is flat
  int pieces_ = 1;  // intervals a step
  int count_ = 0;
  int steps_ = 0;             // from reach_ below the first threshold to reach_ above the last
  std::vector<double> bell_;  // [2 reach_ + 1, pieces_, kCoefficients]: r sg_r' around a threshold
  std::vector<S> coefficients_;  // [2, steps_, pieces_, kCoefficients]
  AucGradient<S> gradient_;
};

}  // namespace rk
