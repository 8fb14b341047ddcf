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

// The number of processes started, this one included, and the variable that says so.
struct Started {
  int processes = 1;
  const char* said_by = "";
};

// As the starters report it: Open MPI; MPICH, Intel MPI and Slurm's PMI-2; Slurm's srun.
Started started() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const char* value = std::getenv(name))
      return {static_cast<int>(std::max(1L, std::strtol(value, nullptr, 10))), name};
  }
  return {};
}

}  // namespace

std::unique_ptr<ProcessGroup> group_of_one() { return std::make_unique<GroupOfOne>(); }

std::unique_ptr<ProcessGroup> join_process_group() {
  const auto [processes, said_by] = started();
  if (processes == 1) return group_of_one();
  if (!has_mpi()) {
    fail<UsageError>(
        "started as one of {} processes, but this build has no MPI; install libopenmpi-dev and "
        "build again, or start one process",
        processes);
  }
  std::unique_ptr<ProcessGroup> group = join_mpi();
  if (!group->alone()) return group;
  group->leave(0);
  fail<UsageError>(
      "started as one of {} processes ({}), but MPI found no other: start it by the mpirun of the "
      "MPI that it was built with (srun: --mpi=pmix), or unset {} to train in one process",
      processes, said_by, said_by);
}

}  // namespace rk
