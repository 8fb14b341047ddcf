// SupAP with its calibration term (ROADMAP), Ramzi et al. 2021 (formula:
// kernels/rows/sup_ap_row.h). Mean over queries with a positive; the calibration is a contrastive
// loss with pos=0.9, neg=0.6.
// compat=official: the query is one of its own positives.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry sup_ap_entry();

}  // namespace rk
