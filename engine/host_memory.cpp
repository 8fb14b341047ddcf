#include "engine/host_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>

namespace rk {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

// The number behind `key` in a file of lines "key number ..."; kUnknown without.
std::int64_t number_at(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  std::int64_t number = 0;
  for (std::string line; file >> word; std::getline(file, line)) {
    if (word == key) return file >> number ? number : kUnknown;
  }
  return kUnknown;
}

// A file that holds one number, or "max".
std::int64_t number_in(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? number : kUnknown;
}

struct Names {
  const char *limit, *usage, *cached;
};
constexpr Names kFirst = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kSecond = {"memory.max", "memory.current", "inactive_file"};

// A container sees its own group as the mount's root whatever its path is called outside, so
// folders that are not there are passed by.
std::int64_t left_by_groups(const fs::path& mount, fs::path group, const Names& names) {
  std::int64_t left = kUnknown;
  while (true) {
    const fs::path folder = mount / group;
    const std::int64_t limit = number_in(folder / names.limit);
    const std::int64_t usage = number_in(folder / names.usage);
    if (limit != kUnknown && usage != kUnknown) {
      const std::int64_t cached = number_at(folder / "memory.stat", names.cached);
      left = std::min(left,
                      std::max<std::int64_t>(0, limit - usage + (cached == kUnknown ? 0 : cached)));
    }
    if (group.empty()) return left;
    group = group.parent_path();
  }
}

}  // namespace

std::int64_t free_host_bytes(const std::string& root) {
  std::int64_t left = number_at(root + "/proc/meminfo", "MemAvailable:");
  if (left != kUnknown) left *= 1024;
  const fs::path mount = root + "/sys/fs/cgroup";
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:/path
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    if (controllers == ",,") {
      left = std::min(left, left_by_groups(mount, group, kSecond));
    } else if (controllers.find(",memory,") != std::string::npos) {
      left = std::min(left, left_by_groups(mount / "memory", group, kFirst));
    }
  }
  return left;
}

}  // namespace rk
