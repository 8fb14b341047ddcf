// Recall@k for k = 1, 2, 4, 8, 16, Patel et al. 2022 (formula: kernels/rows/recall_at_k_row.h).
// Mean over queries with a positive. compat=official: the query itself takes a place in every rank;
// k is capped at the batch size.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry recall_at_k_entry();

}  // namespace rk
