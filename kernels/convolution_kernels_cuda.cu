#include "kernels/convolution_kernels.h"
#include "kernels/launch.cuh"

namespace rk {

RK_CONVOLUTION_KERNELS(RK_LAUNCH);

}  // namespace rk
