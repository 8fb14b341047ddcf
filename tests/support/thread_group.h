// A process group whose members are threads of one process: tests what a step does in a group,
// without MPI.
#pragma once

#include "engine/base/integers.h"
#include "engine/group/process_group.h"

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace rk {

class ThreadGroup final : public ProcessGroup {
 public:
  // Runs `work` in `size` threads and waits for them. `work` must not throw.
  static void run(int size, const std::function<void(ProcessGroup&)>& work) {
    Meeting meeting(size);
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadGroup group(meeting, rank);
        work(group);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(meeting_.brought.size()); }
  void all_reduce_sum(std::span<float> values) override {
    const auto everybody = bring(values.data());
    std::vector<float> sums(values.size());
    for (const void* theirs : everybody) {
      const auto* other = static_cast<const float*>(theirs);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += other[i];
    }
    meeting_.barrier.arrive_and_wait();
    std::ranges::copy(sums, values.begin());
  }
  int all_reduce_max(int value) override {
    int result = value;
    for (const void* theirs : bring(&value))
      result = std::max(result, *static_cast<const int*>(theirs));
    meeting_.barrier.arrive_and_wait();
    return result;
  }
  int leave(int exit_code) override { return exit_code; }

 protected:
  void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override {
    auto place = all.begin();
    for (const void* theirs : bring(mine.data())) {
      const auto* from = static_cast<const std::byte*>(theirs);
      if (from != &*place) std::copy_n(from, mine.size(), place);
      place += static_cast<std::ptrdiff_t>(mine.size());
    }
    meeting_.barrier.arrive_and_wait();
  }
  void wait_for_all() override { meeting_.barrier.arrive_and_wait(); }

 private:
  struct Meeting {
    explicit Meeting(int size) : brought(static_cast<std::size_t>(size)), barrier(size) {}
    std::vector<const void*> brought;  // by rank
    std::barrier<> barrier;
  };

  ThreadGroup(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}

  // Returns what each rank brought to this call, once all have arrived.
  const std::vector<const void*>& bring(const void* mine) {
    meeting_.brought[at(rank_)] = mine;
    meeting_.barrier.arrive_and_wait();
    return meeting_.brought;
  }

  Meeting& meeting_;
  int rank_;
};

}  // namespace rk
