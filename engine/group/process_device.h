// The device of each process of a group: process r of a machine takes that machine's r-th GPU, or
// the only one it sees (Slurm and containers show each process its own). Either every process has a
// GPU or none.
#pragma once

#include "engine/driver/device.h"
#include "engine/group/process_group.h"

#include <cstdint>

namespace rk {

// The same for all processes of a running system, also in containers; another one elsewhere.
std::uint64_t machine_id();

// Among the group's processes with the same machine id.
struct LocalRank {
  int rank = 0;
  int size = 1;
};
LocalRank local_rank_of(ProcessGroup& processes, std::uint64_t machine);

// Collective; for a process alone choose_device(request, report). `auto` takes the CPU for all and
// says why where one of them finds no GPU; `cuda` ends all of them there, the process that finds
// none with the reason, the others with an empty DeviceError. UsageError where processes of one
// machine are to use the same GPU.
DeviceChoice choose_device(const DeviceRequest& request, const GpuReport& report,
                           ProcessGroup& processes, std::uint64_t machine = machine_id());

}  // namespace rk
