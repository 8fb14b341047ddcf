#include "engine/system/usable_cores.h"

#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <sched.h>

namespace rk {
namespace {

class UsableCores : public testing::Test {
 protected:
  UsableCores() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) affinity_ = CPU_COUNT(&set);
  }
  int cores() const { return usable_cores(folder_.path().string()); }

  const TemporaryFolder folder_;
  int affinity_ = 1;
};

TEST_F(UsableCores, AreThoseOfTheAffinityWhereNothingElseIsKnown) {
  EXPECT_EQ(cores(), affinity_);
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), affinity_);
}

// A quota of half a processor gives one core; a parent group may leave less than the own group.
TEST_F(UsableCores, AreNoMoreThanAnyGroupAboveLeaves) {
  folder_.write("proc/self/cgroup", "0::/a/b\n");
  folder_.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), affinity_);
  folder_.write("sys/fs/cgroup/a/b/cpu.max", "6400000 100000\n");
  EXPECT_EQ(cores(), std::min(affinity_, 64));
  folder_.write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  EXPECT_EQ(cores(), 1);
  folder_.write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(cores(), std::min(affinity_, 2));
}

// Also cgroups of version 1. In a container, /proc/self/cgroup names the path outside; the files it
// sees have its own group as their root.
TEST_F(UsableCores, ContainersAndTheFirstKindOfGroups) {
  folder_.write("proc/self/cgroup", "5:cpu,cpuacct:/docker/0123\n4:memory:/x\n");
  folder_.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  folder_.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cores(), affinity_);
  folder_.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(cores(), 1);
  folder_.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  folder_.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  folder_.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "20000\n");
  EXPECT_EQ(cores(), 1);
}

}  // namespace
}  // namespace rk
