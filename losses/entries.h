// The entries of the losses in this folder, each defined in the file of its paper.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry fastap_entry();
LossEntry smooth_ap_entry();
LossEntry rambo_recall_entry();
LossEntry rambo_ap_entry();
LossEntry pnp_o_entry();
LossEntry pnp_iu_entry();
LossEntry pnp_ib_entry();
LossEntry pnp_ds_entry();
LossEntry pnp_dq_entry();
LossEntry triplet_bh_entry();
LossEntry triplet_ba_entry();
LossEntry nsl_entry();
LossEntry proxy_anchor_entry();
LossEntry contrastive_entry();
LossEntry histogram_entry();
LossEntry multi_similarity_entry();
LossEntry recall_at_k_entry();
LossEntry sup_ap_entry();

}  // namespace rk
