// How much memory this process may still take on its machine.
#pragma once

#include <cstdint>
#include <string>

namespace rk {

// The addresses that the C library sets aside for the heap of each new thread, whatever it holds.
// They are scarce only under an address space limit.
inline constexpr std::int64_t kThreadHeapBytes = std::int64_t{64} << 20;

// Returns the least of: what the system calls available; what the memory limits of this process's
// cgroups (v1 and v2, its own and all above) leave, counting pages that only cache files as free;
// what its address space limit (ulimit -v) leaves beside the heaps of more threads. Returns the
// largest int64 if nothing is known.
// `root` is put in front of the system's paths (for tests): /proc/meminfo, /sys/fs/cgroup, ...
std::int64_t free_host_bytes(const std::string& root = "");

}  // namespace rk
