#include "engine/device/dispatch.h"

#include "engine/device/cuda/report.h"

namespace rk {

GpuReport probe_gpus() {
  if constexpr (kHasCuda) {
    return probe_cuda();
  } else {
    return GpuReport();
  }
}

}  // namespace rk
