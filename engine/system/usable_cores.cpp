#include "engine/system/usable_cores.h"

#include "engine/system/cgroups.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <vector>

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

// The processors that this process may run on; at least 1.
int processors_allowed() {
  // The kernel refuses a set smaller than its own, which may be larger than cpu_set_t's 1024.
  for (std::size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> set(sets);
    const std::size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, set.data()) == 0)
      return std::max(CPU_COUNT_S(bytes, set.data()), 1);
  }
  return 1;
}

}  // namespace

int usable_cores(const std::string& root) {
  double cores = processors_allowed();
  for_each_cgroup("cpu", root, [&](const std::filesystem::path& folder, CgroupVersion version) {
    if (const double quota = quota_of(folder, version); quota > 0) cores = std::min(cores, quota);
  });
  return static_cast<int>(std::ceil(cores));
}

}  // namespace rk
