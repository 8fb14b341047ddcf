#include "engine/system/cgroups.h"

#include <fmt/format.h>

#include <fstream>

namespace rk {
namespace {

namespace fs = std::filesystem;

}  // namespace

void for_each_cgroup(const std::string& controller, const std::string& root,
                     const std::function<void(const fs::path&, CgroupVersion)>& f) {
  const fs::path mount = root + "/sys/fs/cgroup";
  const auto upwards = [&](const fs::path& top, fs::path group, CgroupVersion version) {
    for (;; group = group.parent_path()) {
      f(top / group, version);
      if (group.empty()) return;
    }
  };
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:/path
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) {
      upwards(mount, group, CgroupVersion::kV2);
    } else if (fmt::format(",{},", controllers).find(fmt::format(",{},", controller)) !=
               std::string::npos) {
      // Mounted under the controller's own name or under a joint one ("cpu,cpuacct").
      upwards(mount / controller, group, CgroupVersion::kV1);
      if (controllers != controller) upwards(mount / controllers, group, CgroupVersion::kV1);
    }
  }
}

}  // namespace rk
