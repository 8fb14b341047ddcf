// Mean average precision of detection and multi-label classification through black-box
// differentiated ranks, Rolinek et al. 2020, on scores and 0/1 targets [N, C]
// (losses/scores/ranking.h).
//   rambo_map  AP over each class's column, mean over classes with a positive
//   rambo_apc  AP over all scores flattened row by row into one ranking
//   rambo_map_apc  (1 - beta) rambo_map + beta rambo_apc; both gradients are scaled before ranks
//                  are perturbed by lambda, as in the paper's sum of losses
// valid_queries: classes with a positive; for rambo_apc 1, or 0 without any positive.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry rambo_map_entry();
LossEntry rambo_apc_entry();
LossEntry rambo_map_apc_entry();

}  // namespace rk
