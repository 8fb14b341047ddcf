#include "engine/group/process_group.h"

#include "engine/base/error.h"
#include "engine/group/mpi/process_group.h"

#include <algorithm>
#include <cstdlib>

namespace rk {
namespace {

class GroupOfOne final : public ProcessGroup {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce_sum(std::span<float>) override {}
  int all_reduce_max(int value) override { return value; }
  int leave(int exit_code) override { return exit_code; }

 protected:
  void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override {
    expect(mine.size() == all.size(), "[all_gather] expected {} bytes, got {}", mine.size(),
           all.size());
    if (mine.data() != all.data()) std::ranges::copy(mine, all.begin());
  }
  void wait_for_all() override {}
};

// The number of processes started, this one included, as the starters report it: Open MPI; MPICH,
// Intel MPI and Slurm's PMI-2; Slurm's srun.
int started_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const char* value = std::getenv(name))
      return static_cast<int>(std::max(1L, std::strtol(value, nullptr, 10)));
  }
  return 1;
}

}  // namespace

std::unique_ptr<ProcessGroup> group_of_one() { return std::make_unique<GroupOfOne>(); }

std::unique_ptr<ProcessGroup> join_process_group() {
  const int processes = started_processes();
  if (processes == 1) return group_of_one();
  if (has_mpi()) return join_mpi();
  fail<UsageError>(
      "started as one of {} processes, but this build has no MPI; install libopenmpi-dev and build "
      "again, or start one process",
      processes);
}

}  // namespace rk
