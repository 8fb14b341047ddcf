// How much memory this process may still take on its machine.
#pragma once

#include <cstdint>
#include <string>

namespace rk {

// The least of what the system calls available, of what the limits of this process's cgroups (1
// and 2, its own and all above) leave, where pages that only cache files count as free, and of what
// its limit of addresses (ulimit -v) leaves. The largest number where nothing is known. `root`
// stands before the system's paths: /proc/meminfo, /sys/fs/cgroup, ...
std::int64_t free_host_bytes(const std::string& root = "");

}  // namespace rk
