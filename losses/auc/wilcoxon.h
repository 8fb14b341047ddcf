// Every hardest positive above every hardest negative, Gajic et al. 2022, eq. 11
// (kernels/rows/wilcoxon_row.h): the comparison whose mean is the area under the ROC curve.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry wilcoxon_bh_entry();

}  // namespace rk
