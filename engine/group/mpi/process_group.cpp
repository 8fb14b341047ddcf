#include "engine/group/mpi/process_group.h"

#include "engine/base/error.h"

#include <limits>
#include <vector>

#include <mpi.h>

namespace rk {
namespace {

// MPI counts in int.
int count_of(std::size_t elements) {
  expect(elements <= static_cast<std::size_t>(std::numeric_limits<int>::max()),
         "[mpi] expected at most 2^31 - 1 elements in a call, got {}", elements);
  return static_cast<int>(elements);
}

class MpiGroup final : public ProcessGroup {
 public:
  MpiGroup() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    parts_.resize(static_cast<std::size_t>(size_));
    begins_.resize(static_cast<std::size_t>(size_));
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  // Not MPI_Allreduce, which does not promise every process the same bits: each part of the sum is
  // computed by one process and then sent to all.
  void all_reduce_sum(std::span<float> values) override {
    const std::size_t count = values.size(), size = parts_.size();
    for (std::size_t r = 0; r < size; ++r) {
      const std::size_t begin = r * count / size;
      begins_[r] = count_of(begin);
      parts_[r] = count_of((r + 1) * count / size - begin);
    }
    const auto mine = static_cast<std::size_t>(rank_);
    if (sums_.size() < static_cast<std::size_t>(parts_[mine])) {
      sums_.resize(static_cast<std::size_t>(parts_[mine]));
    }
    MPI_Reduce_scatter(values.data(), sums_.data(), parts_.data(), MPI_FLOAT, MPI_SUM,
                       MPI_COMM_WORLD);
    MPI_Allgatherv(sums_.data(), parts_[mine], MPI_FLOAT, values.data(), parts_.data(),
                   begins_.data(), MPI_FLOAT, MPI_COMM_WORLD);
  }

  int all_reduce_max(int value) override {
    int result = 0;
    MPI_Allreduce(&value, &result, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return result;
  }

  int leave(int exit_code) override {
    if (exit_code != 0 && !ended_together()) MPI_Abort(MPI_COMM_WORLD, exit_code);
    const int code_of_all = all_reduce_max(exit_code);
    MPI_Finalize();
    return code_of_all;
  }

 protected:
  void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override {
    expect(all.size() == mine.size() * parts_.size(), "[all_gather] expected {} bytes, got {}",
           mine.size() * parts_.size(), all.size());
    const int bytes = count_of(mine.size());
    const bool in_place = mine.data() == all.data() + static_cast<std::size_t>(rank_) * mine.size();
    MPI_Allgather(in_place ? MPI_IN_PLACE : mine.data(), bytes, MPI_BYTE, all.data(), bytes,
                  MPI_BYTE, MPI_COMM_WORLD);
  }
  void wait_for_all() override { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  int rank_ = 0;
  int size_ = 1;
  std::vector<int> parts_, begins_;  // of a sum, by process
  std::vector<float> sums_;          // this process's part; grows up to the largest sum
};

}  // namespace

bool has_mpi() { return true; }

std::unique_ptr<ProcessGroup> join_mpi() { return std::make_unique<MpiGroup>(); }

}  // namespace rk
