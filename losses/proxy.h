// Losses with learnable class proxies, raw vectors of any length that the loss normalises; a label
// is the row of its proxy (kernels/rows/proxy_rows.h).
//   nsl           normalised softmax, Oi et al. 2021, eq. 3: mean over the batch of cross-entropies
//   proxy_anchor  Kim et al. 2020, eq. 4: 1/|C+| over classes present + 1/C over all classes
// All items are valid. The proxies need a learning rate of their own: 100 times the network's in
// both papers. They are initialised as in the code that the papers point to:
//   nsl           uniform in +-1/sqrt(D), Zhai & Wu 2019 (who introduced it), PyTorch's nn.Linear
//   proxy_anchor  normal with variance 2/C, kaiming_normal_(mode="fan_out") of the authors
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry nsl_entry();
LossEntry proxy_anchor_entry();

}  // namespace rk
