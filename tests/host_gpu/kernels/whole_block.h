// A block as a GPU runs it: 256 threads in warps of 32, as fibers. Several times slower than the
// block of one thread (serial_block.h), so that only some tests ask for it (block_seed()).
#pragma once

#include "engine/base/integers.h"
#include "kernels/block_team.h"
#include "tests/host_gpu/kernels/fibers.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace rk::host_gpu {

// RK_BLOCK_SEED, or with RK_BLOCK_SEED=drawn one that is drawn and printed: kernels run on whole
// blocks, whose threads take turns in orders of this seed.
std::optional<std::uint64_t> block_seed();

// What a block's threads share beside a kernel's own memory.
struct WholeBlockState {
  explicit WholeBlockState(std::uint64_t seed) : fibers(seed) {}

  struct Slot {
    alignas(8) std::array<std::byte, 8> bytes;
  };
  Fibers fibers;
  // What lanes give each other, and which of the two a lane used last: it may begin the next
  // operation before others have read what this one gave.
  std::array<std::array<Slot, Fibers::kThreads>, 2> slots;
  std::array<std::uint8_t, Fibers::kThreads> turns{};
};

class WholeBlock {
 public:
  static constexpr int kThreads = Fibers::kThreads;
  static constexpr int kWarpSize = Fibers::kWarpSize;

  WholeBlock(WholeBlockState* state, int thread, int index, int blocks, BlockMemory* memory)
      : state_(state), thread_(thread), index_(index), blocks_(blocks), memory_(memory) {}

  // Runs f(block) on every thread of block `index` of `blocks`.
  template <class F> static void run(int index, int blocks, BlockMemory* memory, F&& f) {
    WholeBlockState& state = of_this_host_thread();
    state.fibers.run([&](int thread) { f(WholeBlock(&state, thread, index, blocks, memory)); });
  }

  int thread() const { return thread_; }
  int index() const { return index_; }
  int blocks() const { return blocks_; }
  void sync(unsigned line = __builtin_LINE()) const { state_->fibers.wait_for_block(line); }
  template <class T> T shuffle_xor(T value, int mask, unsigned line = __builtin_LINE()) const {
    exchange(value, line);
    return given<T>(thread_ ^ mask);
  }
  unsigned ballot(bool flag, unsigned line = __builtin_LINE()) const {
    exchange(flag, line);
    unsigned bits = 0;
    const int first = thread_ / kWarpSize * kWarpSize;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      bits |= given<bool>(first + lane) ? 1U << static_cast<unsigned>(lane) : 0U;
    }
    return bits;
  }
  int count(unsigned bits) const { return std::popcount(bits); }
  BlockMemory& memory() const { return *memory_; }
  // Blocks of other streams may add to the same counter on other threads of the host.
  template <class T> void add(T* counter, T by) const {
    std::atomic_ref<T>(*counter).fetch_add(by, std::memory_order_relaxed);
  }

 private:
  static WholeBlockState& of_this_host_thread();

  template <class T> void exchange(T value, unsigned line) const {
    static_assert(sizeof(T) <= sizeof(WholeBlockState::Slot));
    state_->turns[at(thread_)] ^= 1U;
    std::memcpy(&slot_of(thread_), &value, sizeof(T));
    state_->fibers.wait_for_warp(line);
  }
  template <class T> T given(int thread) const {
    T value;
    std::memcpy(&value, &slot_of(thread), sizeof(T));
    return value;
  }
  // In this lane's turn, which is that of all lanes.
  WholeBlockState::Slot& slot_of(int thread) const {
    return state_->slots[state_->turns[at(thread_)]][at(thread)];
  }

  WholeBlockState* state_;
  int thread_;
  int index_;
  int blocks_;
  BlockMemory* memory_;
};

}  // namespace rk::host_gpu
