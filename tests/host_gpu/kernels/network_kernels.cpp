// In place of kernels/cuda/batchnorm_kernels.cu, convolution_kernels.cu and step_kernels.cu.
#include "kernels/cuda/batchnorm_kernels.h"
#include "kernels/cuda/convolution_kernels.h"
#include "kernels/cuda/step_kernels.h"
#include "tests/host_gpu/kernels/launch.h"

namespace rk {

RK_BATCHNORM_KERNELS(RK_LAUNCH);
RK_CONVOLUTION_KERNELS(RK_LAUNCH);
RK_STEP_KERNELS(RK_LAUNCH);

}  // namespace rk
