#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/loss_kernels.h"

namespace rk {

RK_LOSS_KERNELS(RK_LAUNCH);

}  // namespace rk
