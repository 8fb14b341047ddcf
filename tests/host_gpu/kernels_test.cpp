// The kernels of kernels/launch.h on the emulated GPU.
#include "tests/kernel_cases/check_kernels.h"

namespace rk {
namespace {

TEST(Kernels, AgreeWithDouble) {
  for (const KernelCase& test : kernel_cases()) {
    SCOPED_TRACE(test.name);
    for (const Checked& array : test.run()) expect_as_checked(array);
  }
}

}  // namespace
}  // namespace rk
