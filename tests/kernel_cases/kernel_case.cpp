#include "tests/kernel_cases/kernel_case.h"

namespace rk {

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> cases;
  add_batchnorm_cases(cases);
  add_convolution_cases(cases);
  add_pool_cases(cases);
  add_step_cases(cases);
  add_optimizer_cases(cases);
  add_score_cases(cases);
  return cases;
}

}  // namespace rk
