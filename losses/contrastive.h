// Contrastive loss on similarities (formula: kernels/rows/contrastive_row.h): the mean over
// positive pairs below `pos` plus the mean over negative pairs above `neg`, both over ordered
// pairs; 0 if no query has a positive.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry contrastive_entry();

}  // namespace rk
