#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ranking_kernels.h"

namespace rk {

RK_RANKING_KERNELS(RK_LAUNCH);

}  // namespace rk
