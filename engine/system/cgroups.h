// The Linux control groups (cgroups, version 1 and 2, under /sys/fs/cgroup) that limit this
// process: those of a container or of a batch system.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace rk {

enum class CgroupVersion { kV1, kV2 };

// Calls f(folder, version) for every group that limits this process's use of `controller`
// ("memory", "cpu"): its own group and all groups above it, up to the mount. A container sees its
// own group as the root of the mount, whatever the group's path is outside, so a folder passed to f
// may not exist. `root` is put in front of the system's paths (for tests).
void for_each_cgroup(
    const std::string& controller, const std::string& root,
    const std::function<void(const std::filesystem::path& folder, CgroupVersion version)>& f);

}  // namespace rk
