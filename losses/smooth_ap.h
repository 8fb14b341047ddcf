// Smooth-AP, Brown et al. 2020: ranks relaxed by sigmoids (formula: kernels/rows/smooth_ap_row.h).
// Value: mean over queries with a positive. compat=official: the query is one of its own positives.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry smooth_ap_entry();

}  // namespace rk
