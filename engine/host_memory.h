// How much memory this process may still take on its machine.
#pragma once

#include <cstdint>
#include <string>

namespace rk {

// The least of what the system calls available and of what the limits of this process's cgroups (1
// and 2, its own and all above) leave; pages that only cache files count as free. The largest
// number where nothing is known. `root` stands before the system's paths: /proc/meminfo,
// /sys/fs/cgroup, ...
std::int64_t free_host_bytes(const std::string& root = "");

}  // namespace rk
