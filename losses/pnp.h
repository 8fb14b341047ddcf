// PNP, Li et al. 2022: a function of the number of negatives before each positive, which differs by
// variant (formulas: kernels/rows/pnp_row.h). Value: mean over queries with a positive of the mean
// over their positives. compat=official: the query is one of its own positives; pnp_iu lacks "- n".
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry pnp_o_entry();
LossEntry pnp_iu_entry();
LossEntry pnp_ib_entry();
LossEntry pnp_ds_entry();
LossEntry pnp_dq_entry();

}  // namespace rk
