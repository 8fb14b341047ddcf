// The processes that train one network together, each on a machine or a GPU of its own: started by
// MPI (mpirun) or Slurm (srun), talking through MPI. A program started by itself is a group of one.
//
// Calls are collective: every process makes the same ones in the same order, and waits for the
// others where it is ahead. Only the thread that joined may make them. What goes wrong between the
// processes ends all of them, with MPI's own message.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace rk {

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  virtual int rank() const = 0;  // 0 .. size() - 1
  virtual int size() const = 0;
  bool first() const { return rank() == 0; }
  bool alone() const { return size() == 1; }

  // all = [size, mine.size()]: everybody's, in the order of their ranks. `mine` may be its own
  // place in `all`, but must not overlap it otherwise.
  template <class T> void all_gather(std::span<const T> mine, std::span<T> all) {
    all_gather_bytes(std::as_bytes(mine), std::as_writable_bytes(all));
  }
  // Sums element by element over the processes, in place; the same bits on all of them.
  virtual void all_reduce_sum(std::span<float> values) = 0;
  virtual int all_reduce_max(int value) = 0;

  // Waits for the others, all of whom are about to leave for the same reason: what one of them
  // still had to save is saved.
  virtual void end_together() = 0;
  // The last call. With an exit code other than 0, and not after end_together(), the others would
  // wait for this process for ever, so it ends them with that exit code.
  virtual void leave(int exit_code) = 0;

 protected:
  virtual void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

// A process by itself, however it was started.
std::unique_ptr<ProcessGroup> group_of_one();

// The group this process was started in. UsageError where it was started as one of several by a
// build without MPI.
std::unique_ptr<ProcessGroup> join_process_group();

}  // namespace rk
