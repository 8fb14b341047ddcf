#include "engine/system/host_memory.h"

#include "engine/system/cgroups.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>

namespace rk {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

// The number after `key` in a file of lines "key number ..."; kUnknown without that key.
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
  const char *limit, *usage;
  std::array<const char*, 2> cached;  // memory.stat's page cache: files read once, and more than
                                      // once
};
constexpr Names kV1 = {
    "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}};
constexpr Names kV2 = {"memory.max", "memory.current", {"inactive_file", "active_file"}};

std::int64_t left_by_group(const fs::path& folder, const Names& names) {
  const std::int64_t limit = number_in(folder / names.limit);
  const std::int64_t usage = number_in(folder / names.usage);
  if (limit == kUnknown || usage == kUnknown) return kUnknown;
  std::int64_t held = usage;
  for (const char* name : names.cached) {
    const std::int64_t cached = number_at(folder / "memory.stat", name);
    if (cached != kUnknown) held = std::max<std::int64_t>(0, held - cached);
  }
  return std::max<std::int64_t>(0, limit - held);
}

// What the address space limit (ulimit -v) leaves beside the heaps of threads that have yet to
// start.
std::int64_t left_by_limit(const std::string& root) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  const std::int64_t pages = number_in(root + "/proc/self/statm");
  if (pages == kUnknown) return kUnknown;
  constexpr std::int64_t kHeaps = 10 * kThreadHeapBytes;
  return std::max<std::int64_t>(
      0, static_cast<std::int64_t>(limit.rlim_cur) - pages * ::sysconf(_SC_PAGESIZE) - kHeaps);
}

}  // namespace

std::int64_t free_host_bytes(const std::string& root) {
  std::int64_t left = number_at(root + "/proc/meminfo", "MemAvailable:");
  if (left != kUnknown) left *= 1024;
  left = std::min(left, left_by_limit(root));
  for_each_cgroup("memory", root, [&](const fs::path& folder, CgroupVersion version) {
    left = std::min(left, left_by_group(folder, version == CgroupVersion::kV2 ? kV2 : kV1));
  });
  return left;
}

}  // namespace rk
