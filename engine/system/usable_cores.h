// The number of processors that this process may keep busy.
#pragma once

#include <string>

namespace rk {

// Returns the smaller of the CPUs in the process's affinity mask and the CPU time that its control
// groups grant (cpu.max, or the cgroup v1 quota), rounded up; at least 1. `root` is put in front of
// the system's paths (for tests).
int usable_cores(const std::string& root = "");

}  // namespace rk
