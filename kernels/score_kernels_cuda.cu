#include "kernels/score_kernels.h"
#include "kernels/launch.cuh"

namespace rk {

RK_SCORE_KERNELS(RK_LAUNCH);

}  // namespace rk
