#include "engine/base/error.h"
#include "engine/group/nccl/device_group.h"

namespace rk {

std::unique_ptr<DeviceGroup> join_nccl(const CudaContext&, ProcessGroup& processes) {
  fail<DeviceError>(
      "{} processes cannot share their GPUs' work: this build has no NCCL; install libnccl-dev and "
      "build again, start one process, or use --device cpu",
      processes.size());
}

}  // namespace rk
