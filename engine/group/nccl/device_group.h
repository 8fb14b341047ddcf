// NCCL behind DeviceGroup: nccl/ in builds that have its header, absent/nccl.cpp in the others.
#pragma once

#include "engine/device/cuda/context.h"
#include "engine/group/device_group.h"

namespace rk {

// Of at least two processes. Where there is no NCCL: an error.
std::unique_ptr<DeviceGroup> join_nccl(const CudaContext& cuda, ProcessGroup& processes);

}  // namespace rk
