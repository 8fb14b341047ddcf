// The kernels of kernels/launch.h on a GPU.
#include "tests/cuda/gpu.h"
#include "tests/kernel_cases/check_kernels.h"

namespace rk {
namespace {

class CudaKernels : public OnGpu {};

TEST_F(CudaKernels, AgreeWithDouble) {
  for (const KernelCase& test : kernel_cases()) {
    SCOPED_TRACE(test.name);
    for (const Checked& array : test.run()) expect_as_checked(array);
  }
}

TEST_F(CudaKernels, GiveTheSameBitsTwice) {
  for (const KernelCase& test : kernel_cases()) {
    SCOPED_TRACE(test.name);
    expect_same_twice(test);
  }
}

}  // namespace
}  // namespace rk
