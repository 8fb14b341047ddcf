// Multi-similarity loss, Wang et al. 2019 (formula: kernels/multi_similarity_row.h). Mean over
// queries with a positive and a negative; those of which mining leaves nothing count as 0.
#pragma once

#include "losses/registry.h"

namespace rk {

LossEntry multi_similarity_entry();

}  // namespace rk
