// In place of kernels/cuda/loss_kernels.cu, ranking_kernels.cu and score_kernels.cu.
#include "kernels/cuda/loss_kernels.h"
#include "kernels/cuda/ranking_kernels.h"
#include "kernels/cuda/score_kernels.h"
#include "tests/host_gpu/kernels/launch.h"

namespace rk {

RK_LOSS_KERNELS(RK_LAUNCH);
RK_RANKING_KERNELS(RK_LAUNCH);
RK_SCORE_KERNELS(RK_LAUNCH);

}  // namespace rk
