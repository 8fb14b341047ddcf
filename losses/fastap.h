// FastAP, Cakir et al. 2019: average precision relaxed by soft histograms of the distances
// (formula: kernels/rows/fastap_row.h). Value: 1 - mean over queries with a positive.
// compat=official: the authors' PyTorch backward, V/2 times the gradient, V = queries with a
// positive.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry fastap_entry();

}  // namespace rk
