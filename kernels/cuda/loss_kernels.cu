#include "kernels/cuda/loss_kernels.h"
#include "kernels/cuda/launch.cuh"

namespace rk {

RK_LOSS_KERNELS(RK_LAUNCH);

}  // namespace rk
