#include "kernels/cuda/convolution_kernels.h"

#include "kernels/cuda/launch.cuh"

namespace rk {

RK_CONVOLUTION_KERNELS(RK_LAUNCH);

}  // namespace rk
