// The processes that train one network together, each on its own machine or GPU: started by MPI
// (mpirun) or Slurm (srun), communicating through MPI. A program started by itself is a group of
// one.
//
// Calls are collective: every process makes the same calls in the same order, and waits for the
// others if it is ahead. Only the thread that joined may make them. An error between the processes
// ends all of them, with MPI's own message.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <span>

namespace rk {

// Ends a process because of what another process of its group met and reports, after both have
// called end_together(): run_program() prints nothing and returns the other's exit code.
class ReportedByAnother : public std::exception {
 public:
  const char* what() const noexcept override { return "another process reports the error"; }
};

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  virtual int rank() const = 0;  // 0 .. size() - 1
  virtual int size() const = 0;
  bool first() const { return rank() == 0; }
  bool alone() const { return size() == 1; }

  // all = [size, mine.size()]: the `mine` of every process, in rank order. `mine` may be this
  // process's place in `all`, but must not overlap `all` otherwise.
  template <class T> void all_gather(std::span<const T> mine, std::span<T> all) {
    all_gather_bytes(std::as_bytes(mine), std::as_writable_bytes(all));
  }
  // Sums element by element over the processes, in place; every process gets the same bits.
  virtual void all_reduce_sum(std::span<float> values) = 0;
  virtual int all_reduce_max(int value) = 0;

  // Waits until every process, all about to leave for the same reason, has saved what it still had
  // to.
  void end_together() {
    wait_for_all();
    ended_together_ = true;
  }
  bool ended_together() const { return ended_together_; }
  // The last call; returns the exit code to end with, the largest of all processes, for mpirun
  // returns that of any. With an exit code other than 0, unless end_together() was called, it ends
  // the other processes with that exit code, because they would wait for this one for ever.
  virtual int leave(int exit_code) = 0;

 protected:
  virtual void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual void wait_for_all() = 0;

 private:
  bool ended_together_ = false;
};

// A single process, however it was started.
std::unique_ptr<ProcessGroup> group_of_one();

// The group this process was started in. Throws UsageError if it was started as one of several but
// the build has no MPI, or another than the one that started it.
std::unique_ptr<ProcessGroup> join_process_group();

}  // namespace rk
