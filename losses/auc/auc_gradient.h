// The table behind AucGradient (kernels/rows/auc_row.h, kernels/rows/auc_table.h). Each interval's
// polynomial interpolates r sg_r' at the interval's Chebyshev points. A whole number of intervals
// makes one step ds, so build() computes everything that depends on r and ds alone once; fill()
// only adds it up, on either device.
#pragma once

#include "engine/device/context.h"
#include "kernels/rows/auc_table.h"

#include <cstdint>

namespace rk {

template <class S> class AucGradientTable {
 public:
  // Thresholds -1 + m step, m < count.
  void build(const Context& context, double r, double step, int count);
  // slopes [2 count]: positive pairs', then negative pairs'
  void fill(const Context& context, const S* slopes) const;
  // Points into the table, which only build() moves.
  AucGradient<S> gradient() const { return gradient_; }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(bell_.bytes() + coefficients_.bytes());
  }

 private:
  static constexpr int kCoefficients = AucGradient<S>::kCoefficients;

  Memory bell_;  // double [2 reach + 1, intervals, kCoefficients]: r sg_r' around a threshold
  Memory coefficients_;  // [2, steps, intervals, kCoefficients]: positive pairs', then negative
  AucTable<S> table_;    // used by fill()
  AucGradient<S> gradient_;
};

}  // namespace rk
