// A CUDA block emulated by host threads, one per lane, for kernels/block_team.h: 2 warps of 2
// lanes, so that ThreadSanitizer sees every barrier that BlockTeam lacks and BlockTeam's arithmetic
// runs without a GPU; or as many warps and lanes as CudaBlock has. A sync() of a given file and
// line can be left out, as in thread_team.h.
#pragma once

#include "engine/base/integers.h"
#include "kernels/block_team.h"

#include <barrier>
#include <bit>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace rk::race {

// The source position of a sync().
struct SyncPlace {
  std::string file;
  unsigned line = 0;
};

// Threads that are started once and work together, again and again: under ThreadSanitizer a thread
// costs more than most blocks compute.
class Lockstep {
 public:
  explicit Lockstep(int count) : begin_(count + 1), end_(count + 1) {
    for (int thread = 0; thread < count; ++thread) {
      threads_.emplace_back([this, thread] {
        while (true) {
          begin_.arrive_and_wait();
          if (!work_) return;
          work_(thread);
          end_.arrive_and_wait();
        }
      });
    }
  }
  Lockstep(const Lockstep&) = delete;
  Lockstep& operator=(const Lockstep&) = delete;
  ~Lockstep() {
    work_ = nullptr;
    begin_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }

  // Runs work(thread) on every thread and waits for them.
  void run(std::function<void(int)> work) {
    work_ = std::move(work);
    begin_.arrive_and_wait();
    end_.arrive_and_wait();
  }

 private:
  std::barrier<> begin_, end_;
  std::function<void(int)> work_;
  std::vector<std::thread> threads_;
};

template <int kWarpsOfBlock, int kLanesOfWarp> struct BlockStateOf {
  static constexpr int kWarps = kWarpsOfBlock;
  static constexpr int kWarpSize = kLanesOfWarp;
  static constexpr int kThreads = kWarps * kWarpSize;

  BlockStateOf() {
    for (int w = 0; w < kWarps; ++w) warps.emplace_back(kWarpSize);
  }

  struct alignas(64) Lane {
    double value = 0;
    bool flag = false;
  };
  std::barrier<> block{kThreads};
  std::deque<std::barrier<>> warps;
  Lane lanes[at(kThreads)];
  BlockMemory memory;
  std::vector<SyncPlace> syncs;  // seen so far; written by thread 0 alone
  SyncPlace dropped;             // the sync() that does nothing
  Lockstep threads{kThreads};
};

template <class State> class EmulatedBlockOf {
 public:
  static constexpr int kThreads = State::kThreads;
  static constexpr int kWarpSize = State::kWarpSize;

  // Block `index` of `blocks`.
  EmulatedBlockOf(State& state, int thread, int index, int blocks)
      : state_(&state), thread_(thread), index_(index), blocks_(blocks) {}

  int thread() const { return thread_; }
  int index() const { return index_; }
  int blocks() const { return blocks_; }

  void sync(unsigned line = __builtin_LINE(), std::string_view file = __builtin_FILE()) const {
    if (thread_ == 0) note(line, file);
    if (line != state_->dropped.line || file != state_->dropped.file) {
      state_->block.arrive_and_wait();
    }
  }

  template <class T> T shuffle_xor(T value, int mask) const {
    mine().value = static_cast<double>(value);
    warp().arrive_and_wait();
    const T other = static_cast<T>(state_->lanes[thread_ ^ mask].value);
    warp().arrive_and_wait();
    return other;
  }

  unsigned ballot(bool flag) const {
    mine().flag = flag;
    warp().arrive_and_wait();
    unsigned bits = 0;
    const int first = thread_ / kWarpSize * kWarpSize;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if (state_->lanes[first + lane].flag) bits |= 1U << lane;
    }
    warp().arrive_and_wait();
    return bits;
  }
  int count(unsigned bits) const { return std::popcount(bits); }
  BlockMemory& memory() const { return state_->memory; }
  template <class T> void add(T* counter, T by) const {
    __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
  }

 private:
  std::barrier<>& warp() const { return state_->warps[at(thread_ / kWarpSize)]; }
  typename State::Lane& mine() const { return state_->lanes[thread_]; }
  void note(unsigned line, std::string_view file) const {
    for (const SyncPlace& seen : state_->syncs) {
      if (seen.line == line && seen.file == file) return;
    }
    state_->syncs.push_back({std::string(file), line});
  }

  State* state_;
  int thread_;
  int index_;
  int blocks_;
};

using BlockState = BlockStateOf<2, 2>;
using EmulatedBlock = EmulatedBlockOf<BlockState>;
using WideBlockState = BlockStateOf<8, 32>;
using EmulatedTeam = BlockTeam<EmulatedBlock>;

// Runs work(block) on every thread of `blocks` blocks, one block after another.
template <class State, class F> void run_blocks(State& state, int blocks, F&& work) {
  state.threads.run([&](int thread) {
    for (int index = 0; index < blocks; ++index) {
      work(EmulatedBlockOf<State>(state, thread, index, blocks));
      state.block.arrive_and_wait();
    }
  });
}

}  // namespace rk::race
