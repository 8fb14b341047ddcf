#include "kernels/cuda/batchnorm_kernels.h"

#include "kernels/cuda/launch.cuh"

namespace rk {

RK_BATCHNORM_KERNELS(RK_LAUNCH);

}  // namespace rk
