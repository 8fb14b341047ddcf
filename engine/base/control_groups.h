// The control groups (cgroups, of the first and the second kind) that limit this process, as Linux
// shows them under /sys/fs/cgroup: a container's, a batch system's.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace rk {

enum class GroupKind { kFirst, kSecond };

// f(folder, kind) for every group that limits this process in what `controller` ("memory", "cpu")
// controls: its own, and all above up to the mount. A container sees its own group as the mount's
// root whatever its path is called outside, so folders may not be there. `root` stands before the
// system's paths.
void for_each_control_group(
    const std::string& controller, const std::string& root,
    const std::function<void(const std::filesystem::path& folder, GroupKind kind)>& f);

}  // namespace rk
