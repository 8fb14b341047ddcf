// In place of kernels/batchnorm_kernels_cuda.cu, convolution_kernels_cuda.cu, step_kernels_cuda.cu.
#include "kernels/batchnorm_kernels.h"
#include "kernels/convolution_kernels.h"
#include "kernels/step_kernels.h"
#include "tests/host_gpu/launch.h"

namespace rk {

RK_BATCHNORM_KERNELS(RK_LAUNCH);
RK_CONVOLUTION_KERNELS(RK_LAUNCH);
RK_STEP_KERNELS(RK_LAUNCH);

}  // namespace rk
