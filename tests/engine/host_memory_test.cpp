#include "engine/system/host_memory.h"

#include "tests/support/temporary_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>

namespace rk {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class HostMemory : public testing::Test {
 protected:
  std::int64_t free() const { return free_host_bytes(folder_.path().string()); }
  void available(std::int64_t mebibytes) const {
    folder_.write("proc/meminfo",
                  fmt::format("MemTotal:       32000000 kB\nMemFree:          1000 kB\n"
                              "MemAvailable:   {} kB\nBuffers: 3 kB\n",
                              mebibytes << 10));
  }
  const TemporaryFolder folder_;
};

TEST_F(HostMemory, WhereNothingIsKnownThereIsNoLimit) {
  EXPECT_EQ(free(), std::numeric_limits<std::int64_t>::max());
}

TEST_F(HostMemory, IsWhatTheSystemCallsAvailable) {
  available(7000);
  EXPECT_EQ(free(), 7000 * kMiB);
}

TEST_F(HostMemory, IsNoMoreThanAnyGroupAboveLeaves) {
  available(7000);
  folder_.write("proc/self/cgroup", "0::/a/b\n");
  const auto group = [&](const std::string& path, const std::string& limit, std::int64_t used) {
    folder_.write("sys/fs/cgroup/" + path + "memory.max", limit + "\n");
    folder_.write("sys/fs/cgroup/" + path + "memory.current", fmt::format("{}\n", used * kMiB));
  };
  group("a/b/", "max", 500);
  EXPECT_EQ(free(), 7000 * kMiB);
  group("a/", fmt::format("{}", 4000 * kMiB), 1500);
  EXPECT_EQ(free(), 2500 * kMiB);
  // Memory that only caches files counts as free.
  folder_.write(
      "sys/fs/cgroup/a/memory.stat",
      fmt::format("anon 5\ninactive_file {}\nactive_file {}\nfile 9\n", 300 * kMiB, 50 * kMiB));
  EXPECT_EQ(free(), 2850 * kMiB);
  group("a/b/", fmt::format("{}", 600 * kMiB), 500);
  EXPECT_EQ(free(), 100 * kMiB);
  group("a/b/", fmt::format("{}", 600 * kMiB), 700);
  EXPECT_EQ(free(), 0);
}

// Also cgroups of version 1. In a container, /proc/self/cgroup names the path outside; the files it
// sees have its own group as their root.
TEST_F(HostMemory, ContainersAndTheFirstKindOfGroups) {
  available(7000);
  folder_.write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/0123\n0::/\n");
  folder_.write("sys/fs/cgroup/memory/memory.limit_in_bytes", fmt::format("{}\n", 2000 * kMiB));
  folder_.write("sys/fs/cgroup/memory/memory.usage_in_bytes", fmt::format("{}\n", 1200 * kMiB));
  folder_.write("sys/fs/cgroup/memory/memory.stat",
                fmt::format("inactive_file 1\nactive_file 1\ntotal_inactive_file {}\n"
                            "total_active_file {}\n",
                            100 * kMiB, 30 * kMiB));
  EXPECT_EQ(free(), 930 * kMiB);
}

// A group's usage and its cache are counted at different times: just after the cache shrank, it may
// be reported as larger than the usage. "No limit" is the largest number of whole pages.
TEST_F(HostMemory, ACacheAboveWhatIsUsedLeavesTheLimit) {
  available(7000);
  folder_.write("proc/self/cgroup", "4:memory:/\n");
  folder_.write("sys/fs/cgroup/memory/memory.usage_in_bytes", fmt::format("{}\n", 100 * kMiB));
  folder_.write("sys/fs/cgroup/memory/memory.stat",
                fmt::format("total_inactive_file {}\n", 200 * kMiB));
  for (const auto& [limit, left] :
       {std::pair{"9223372036854771712", 7000 * kMiB}, std::pair{"1048576000", 1000 * kMiB}}) {
    folder_.write("sys/fs/cgroup/memory/memory.limit_in_bytes", limit);
    EXPECT_EQ(free(), left);
  }
}

// In a child, whose limit is its own; above the 20 TiB of addresses that a sanitizer reserves.
TEST_F(HostMemory, IsNoMoreThanTheLimitOfAddressesLeaves) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 50;
  folder_.write("proc/self/statm", fmt::format("{} 1 1 1 0 1 0\n", 100 * kMiB / 4096));
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{rlim_t{kLimit}, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(2);
    ::_exit(free() == kLimit - (100 + 640) * kMiB ? 7 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(HostMemory, OfThisMachineIsSomething) { EXPECT_GT(free_host_bytes(), kMiB); }

}  // namespace
}  // namespace rk
