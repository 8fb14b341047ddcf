#include "kernels/cuda/ranking_kernels.h"
#include "kernels/cuda/launch.cuh"

namespace rk {

RK_RANKING_KERNELS(RK_LAUNCH);

}  // namespace rk
