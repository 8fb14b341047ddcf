#include "kernels/step_kernels.h"
#include "kernels/launch.cuh"

namespace rk {

RK_STEP_KERNELS(RK_LAUNCH);

}  // namespace rk
