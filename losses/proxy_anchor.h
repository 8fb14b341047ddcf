// Proxy anchor: the mean over the classes of the batch of their positives' part, plus the mean over
// all classes of their negatives' part (losses/rows/proxy_loss.h;
// kernels/rows/proxy_anchor_row.h). Source: Kim et al. 2020, eq. 4. Proxies start normal with
// variance 2/C, kaiming_normal_(mode="fan_out") in the authors' code.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry proxy_anchor_entry();

}  // namespace rk
