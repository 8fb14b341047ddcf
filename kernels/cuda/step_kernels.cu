#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/step_kernels.h"

namespace rk {

RK_STEP_KERNELS(RK_LAUNCH);

}  // namespace rk
