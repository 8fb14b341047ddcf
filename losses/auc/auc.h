// The losses of Gajic et al. 2022 and what they share.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

inline constexpr const char* kAucPaper =
    "Gajic, Amato, Baldrich, van de Weijer, Gatta: Area Under the ROC Curve Maximization for "
    "Metric Learning, CVPR workshops 2022";

LossEntry auc_bh_entry();
LossEntry auc_ba_entry();
LossEntry wilcoxon_bh_entry();

// The steepness r for thresholds -1, -1 + ds, ..., 1: the paper's table 1 for 0.01, 0.02, 0.05, 0.1
// and 0.2; auc_steepness_solved(ds) for any other ds.
double auc_steepness(double ds);
// The number of thresholds from -1 to 1 inclusive. Throws UsageError if ds does not divide 2.
int auc_thresholds(double ds);
// The non-degenerate local minimum of eq. 10, the integral over x in [-1, 1] of
// (d^2/dx^2 sum_t sg_r(x, t))^2, to a relative 1e-9. Takes up to a second for ds = 0.005.
double auc_steepness_solved(double ds);

}  // namespace rk
