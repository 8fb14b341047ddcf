// Normalised softmax: the mean over the batch of cross-entropies with learnable class proxies
// (losses/rows/proxy_loss.h; kernels/rows/softmax_row.h). Source: Oi et al. 2021, eq. 3. Proxies
// start uniform in +-1/sqrt(D), as in the code of Zhai & Wu 2019, who introduced the loss.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry nsl_entry();

}  // namespace rk
