#include "tools/cli/flags/precision_on_cpu.h"

#include "engine/base/error.h"

namespace rk {

void refuse_precision_without_gpu(const Device& device, const std::string& precision) {
  if (device.cuda || precision == "fp32") return;
  fail<UsageError>("--precision {}: needs a GPU, the CPU computes in fp32; use --precision fp32",
                   precision);
}

}  // namespace rk
