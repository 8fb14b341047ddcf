#include "kernels/cuda/score_kernels.h"
#include "kernels/cuda/launch.cuh"

namespace rk {

RK_SCORE_KERNELS(RK_LAUNCH);

}  // namespace rk
