// NCCL behind DeviceGroup: ../absent/nccl.cpp in builds without its header.
#pragma once

#include "engine/device/cuda/context.h"
#include "engine/group/device_group.h"

namespace rk {

// Needs at least two processes; throws DeviceError without NCCL.
std::unique_ptr<DeviceGroup> join_nccl(const CudaContext& cuda, ProcessGroup& processes);

}  // namespace rk
