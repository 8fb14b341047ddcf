#include "kernels/cuda/step_kernels.h"
#include "kernels/cuda/launch.cuh"

namespace rk {

RK_STEP_KERNELS(RK_LAUNCH);

}  // namespace rk
