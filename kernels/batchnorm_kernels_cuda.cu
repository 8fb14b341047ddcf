#include "kernels/batchnorm_kernels.h"
#include "kernels/launch.cuh"

namespace rk {

RK_BATCHNORM_KERNELS(RK_LAUNCH);

}  // namespace rk
