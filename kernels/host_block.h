// A block of one thread: how the CPU runs kernels written over a Block (kernels/block_team.h). One
// thread waits for nobody, so it cannot reveal a missing barrier; tests/race does. Its team is
// SerialTeam, whose loops vectorise.
#pragma once

#include "kernels/block_team.h"

#include <atomic>

namespace rk {

class HostBlock {
 public:
  static constexpr int kThreads = 1;
  static constexpr int kWarpSize = 1;

  // Block `index` of `blocks`.
  HostBlock(int index, int blocks, BlockMemory* memory)
      : index_(index), blocks_(blocks), memory_(memory) {}

  int thread() const { return 0; }
  int index() const { return index_; }
  int blocks() const { return blocks_; }
  void sync() const {}
  template <class T> T shuffle_xor(T value, int) const { return value; }
  unsigned ballot(bool flag) const { return flag ? 1U : 0U; }
  int count(unsigned bits) const { return static_cast<int>(bits); }
  BlockMemory& memory() const { return *memory_; }
  // Other blocks may add to the same counter on other cores.
  template <class T> void add(T* counter, T by) const {
    std::atomic_ref<T>(*counter).fetch_add(by, std::memory_order_relaxed);
  }

 private:
  int index_;
  int blocks_;
  BlockMemory* memory_;
};

inline SerialTeam team_of(const HostBlock&) { return {}; }

}  // namespace rk
