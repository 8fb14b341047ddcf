// Triplet losses, Hermans et al. 2017 (formulas: kernels/rows/triplet_row.h). triplet_bh: mean over
// queries with a positive and a negative, zeros included. triplet_ba: mean over the triplets with a
// loss above 0.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry triplet_bh_entry();
LossEntry triplet_ba_entry();

}  // namespace rk
