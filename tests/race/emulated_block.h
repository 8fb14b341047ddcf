// A CUDA block made of threads of this machine, for kernels/block_team.h: 2 warps of 2 lanes, each
// lane a thread, so that ThreadSanitizer sees every barrier that BlockTeam lacks and its arithmetic
// runs without a GPU. A sync() of a given file and line can be left out, as in thread_team.h.
#pragma once

#include "kernels/block_team.h"

#include <barrier>
#include <bit>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace rk::race {

// Where a sync() stands.
struct SyncPlace {
  std::string file;
  unsigned line = 0;
};

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
  std::vector<SyncPlace> syncs;  // seen so far; written by thread 0 alone
  SyncPlace dropped;             // the one that does nothing
};

class EmulatedBlock {
 public:
  static constexpr int kThreads = BlockState::kThreads;
  static constexpr int kWarpSize = BlockState::kWarpSize;

  // Block `index` of `blocks`.
  EmulatedBlock(BlockState& state, int thread, int index = 0, int blocks = 1)
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

 private:
  std::barrier<>& warp() const { return state_->warps[thread_ / kWarpSize]; }
  BlockState::Lane& mine() const { return state_->lanes[thread_]; }
  void note(unsigned line, std::string_view file) const {
    for (const SyncPlace& seen : state_->syncs) {
      if (seen.line == line && seen.file == file) return;
    }
    state_->syncs.push_back({std::string(file), line});
  }

  BlockState* state_;
  int thread_;
  int index_;
  int blocks_;
};

using EmulatedTeam = BlockTeamOver<EmulatedBlock>;

// work(block) on every thread of block `index` of `blocks`.
template <class F> void run_block(BlockState& state, int index, int blocks, F&& work) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < BlockState::kThreads; ++thread) {
    threads.emplace_back([&, thread] { work(EmulatedBlock(state, thread, index, blocks)); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace rk::race
