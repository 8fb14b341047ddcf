#include "kernels/ranking_kernels.h"
#include "kernels/launch.cuh"

namespace rk {

RK_RANKING_KERNELS(RK_LAUNCH);

}  // namespace rk
