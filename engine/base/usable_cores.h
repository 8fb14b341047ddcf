// How many processors this process may keep busy.
#pragma once

#include <string>

namespace rk {

// The least of those it may run on (its affinity) and of the time that its control groups give it
// (cpu.max, or the quota of the first kind of groups), rounded up; at least 1. `root` stands before
// the system's paths.
int usable_cores(const std::string& root = "");

}  // namespace rk
