#include "engine/base/usable_cores.h"

#include "engine/base/cgroups.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace rk {
namespace {

// The number in a file; 0 if there is none ("max") or if it is negative: no limit.
double number_in(std::istream& file) {
  double number = 0;
  return file >> number && number > 0 ? number : 0;
}

// The group's CPU quota, in processors; 0: no limit.
double quota_of(const std::filesystem::path& folder, CgroupVersion version) {
  double quota = 0, period = 0;
  if (version == CgroupVersion::kV2) {
    std::ifstream file(folder / "cpu.max");  // "200000 100000"
    quota = number_in(file);
    period = number_in(file);
  } else {
    std::ifstream quota_file(folder / "cpu.cfs_quota_us"),
        period_file(folder / "cpu.cfs_period_us");
    quota = number_in(quota_file);
    period = number_in(period_file);
  }
  return period > 0 ? quota / period : 0;
}

}  // namespace

int usable_cores(const std::string& root) {
  cpu_set_t set;
  const int affinity = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  double cores = std::max(affinity, 1);
  for_each_cgroup("cpu", root, [&](const std::filesystem::path& folder, CgroupVersion version) {
    if (const double quota = quota_of(folder, version); quota > 0) cores = std::min(cores, quota);
  });
  return static_cast<int>(std::ceil(cores));
}

}  // namespace rk
