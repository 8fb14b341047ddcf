// Multi-similarity loss, Wang et al. 2019 (formula: kernels/rows/multi_similarity_row.h). Mean over
// queries with a positive and a negative; queries for which mining keeps no pair count as 0.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry multi_similarity_entry();

}  // namespace rk
