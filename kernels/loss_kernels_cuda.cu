#include "kernels/loss_kernels.h"
#include "kernels/launch.cuh"

namespace rk {

RK_LOSS_KERNELS(RK_LAUNCH);

}  // namespace rk
