// A CUDA block made of threads of this machine, for kernels/block_team.h: 2 warps of 2 lanes, each
// lane a thread, so that ThreadSanitizer sees every barrier that BlockTeam lacks and its arithmetic
// runs without a GPU. A sync() of a given line of block_team.h can be left out, as in
// thread_team.h.
#pragma once

#include "kernels/block_team.h"

#include <barrier>
#include <bit>
#include <thread>
#include <vector>

namespace rk::race {

struct BlockState {
  static constexpr int kWarps = 2;
  static constexpr int kWarpSize = 2;
  static constexpr int kThreads = kWarps * kWarpSize;

  struct alignas(64) Lane {
    double value = 0;
    bool flag = false;
  };
  std::barrier<> block{kThreads};
  std::barrier<> warps[kWarps] = {std::barrier<>(kWarpSize), std::barrier<>(kWarpSize)};
  Lane lanes[kThreads];
  BlockMemory memory;
  std::vector<unsigned> syncs;  // lines of sync() seen so far; written by thread 0 alone
  unsigned dropped = 0;         // the line whose sync() does nothing
};

class EmulatedBlock {
 public:
  static constexpr int kThreads = BlockState::kThreads;
  static constexpr int kWarpSize = BlockState::kWarpSize;

  EmulatedBlock(BlockState& state, int thread) : state_(&state), thread_(thread) {}

  int thread() const { return thread_; }

  void sync(unsigned line = __builtin_LINE()) const {
    if (thread_ == 0) note(line);
    if (line != state_->dropped) state_->block.arrive_and_wait();
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

 private:
  std::barrier<>& warp() const { return state_->warps[thread_ / kWarpSize]; }
  BlockState::Lane& mine() const { return state_->lanes[thread_]; }
  void note(unsigned line) const {
    for (const unsigned seen : state_->syncs) {
      if (seen == line) return;
    }
    state_->syncs.push_back(line);
  }

  BlockState* state_;
  int thread_;
};

using EmulatedTeam = BlockTeamOver<EmulatedBlock>;

// work(team) on every thread of a block.
template <class F> void run_block(BlockState& state, F&& work) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < BlockState::kThreads; ++thread) {
    threads.emplace_back([&, thread] { work(EmulatedTeam(EmulatedBlock(state, thread))); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace rk::race
