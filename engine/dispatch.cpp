#include "engine/dispatch.h"

#include "engine/device_cuda.h"

namespace rk {

GpuReport probe_gpus() {
  if constexpr (kHasCuda) {
    return probe_cuda();
  } else {
    return GpuReport();
  }
}

}  // namespace rk
