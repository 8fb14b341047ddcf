// rambo_map, rambo_apc and rambo_map_apc (losses/rambo_scores.h) on a GPU: all classes are ranked
// in one sort. The number of positives, which the host knows from the targets, sizes a sort: a
// launch is for the batch that was prepared.
#pragma once

#include "losses/cuda/loss.h"

namespace rk {

// (1 - beta) of the loss by class, beta of the one over all scores.
std::unique_ptr<DeviceLoss> make_device_rambo_scores(const CudaContext& cuda, double lambda,
                                                     double margin, double beta);

}  // namespace rk
