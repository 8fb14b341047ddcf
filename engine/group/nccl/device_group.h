// NCCL behind DeviceGroup: device_group_with_nccl_cuda.cpp in builds that have its header,
// device_group_without_nccl_cuda.cpp in the others.
#pragma once

#include "engine/group/device_group.h"

namespace rk {

// Of at least two processes. Where there is no NCCL: an error.
std::unique_ptr<DeviceGroup> join_nccl(const CudaContext& cuda, ProcessGroup& processes);

}  // namespace rk
