// Recall and average precision through black-box differentiated ranks, Rolinek et al. 2020
// (formulas: kernels/rows/rambo_row.h). rambo_recall is a mean over (query, positive) pairs,
// rambo_ap over queries with a positive. Settings of the paper: lambda 4 / 0.2 / 0.2, margin 0.02 /
// 0.05 / 0.02 for SOP / In-Shop / CUB.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry rambo_recall_entry();
LossEntry rambo_ap_entry();

}  // namespace rk
