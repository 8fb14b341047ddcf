#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/score_kernels.h"

namespace rk {

RK_SCORE_KERNELS(RK_LAUNCH);

}  // namespace rk
