// Chooses the device of each process of a group: process r of a machine takes the machine's r-th
// GPU, or the only one it sees (Slurm and containers show each process its own). Either every
// process has a GPU or none has.
#pragma once

#include "engine/driver/device.h"
#include "engine/group/process_group.h"

#include <cstdint>

namespace rk {

// The same for all processes on a running system, also in containers; different on other systems.
std::uint64_t machine_id();

// This process's rank among the group's processes with the same machine id, and their number.
struct LocalRank {
  int rank = 0;
  int size = 1;
};
LocalRank local_rank_of(ProcessGroup& processes, std::uint64_t machine);

// The sum over the processes of this machine, which share its memory. Collective.
std::int64_t sum_on_machine(ProcessGroup& processes, std::int64_t mine,
                            std::uint64_t machine = machine_id());

// Collective; for a single process, choose_device(request, report). If a process finds no GPU,
// `auto` takes the CPU for all and says why; `cuda` ends all of them: the first process without one
// throws a DeviceError with the reason, the others ReportedByAnother. Throws UsageError if
// processes of one machine would use the same GPU.
DeviceChoice choose_device(const DeviceRequest& request, const GpuReport& report,
                           ProcessGroup& processes, std::uint64_t machine = machine_id());

}  // namespace rk
