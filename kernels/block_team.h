// A block of threads as a team (contract: kernels/team.h). A sum is a tree of shuffles within each
// warp, then one step over the warps through shared memory: every thread adds the warps' shares in
// the same order, so all threads hold the same bits and no result is broadcast. A collective has
// two barriers: one before, so that f sees earlier writes, one after the shares (and f's writes).
//
// Templated on a Block: CUDA's (cuda_block.cuh) or, in tests/race, one made of host threads, so
// that ThreadSanitizer checks the barriers without a GPU. A Block has:
//   kThreads, kWarpSize                   both known at compile time
//   thread()                              0 .. kThreads - 1
//   sync()                                barrier of the block
//   shuffle_xor(value, mask)              the value of lane (lane ^ mask) of this warp
//   ballot(flag), count(bits)             one bit a lane; how many bits are set
//   memory()                              a BlockMemory of the block
//   add(counter, by)                      adds to an integer that other threads and blocks add to
#pragma once

#include "kernels/team.h"

#include <cstdint>
#include <limits>

namespace rk {

// Shared memory of a block's collectives.
struct BlockMemory {
  static constexpr int kWarps = 32;  // a block has at most 1024 threads

  template <class S> RK_FN S* values() { return reinterpret_cast<S*>(values_); }

  alignas(8) unsigned char values_[kWarps * 8];
  int indices[kWarps];
  int counts[2][kWarps];
};

template <class Block> class BlockTeam {
 public:
  RK_FN explicit BlockTeam(const Block& block) : block_(block) {}

  RK_FN RK_INLINE void sync() const { block_.sync(); }

  template <class F> RK_FN RK_INLINE void for_each(int n, F&& f) const {
    for (int i = block_.thread(); i < n; i += Block::kThreads) f(i);
  }

  template <class F> RK_FN RK_INLINE auto sum(int n, F&& f) const {
    using S = decltype(f(0));
    block_.sync();
    S total = 0;
    for_each(n, [&](int i) { total += f(i); });
    return add_up(total);
  }

  // The sum of what each thread has, for kernels of blocks: rows know no threads.
  template <class S> RK_FN RK_INLINE S total(S own) const {
    block_.sync();
    return add_up(own);
  }

  // Each warp computes whole sums, so that all of them together cost two barriers.
  template <class S, class F> RK_FN RK_INLINE void sums(int rows, int n, S* out, F&& f) const {
    block_.sync();
    for (int r = warp(); r < rows; r += kWarps) {
      S total = 0;
      for (int i = lane(); i < n; i += Block::kWarpSize) total += f(r, i);
      total = warp_sum(total);
      if (lane() == 0) out[r] = total;
    }
    block_.sync();
  }

  template <class F> RK_FN RK_INLINE auto arg_max(int n, F&& f) const {
    using S = decltype(f(0));
    block_.sync();
    ValueIndex<S> best{-std::numeric_limits<S>::infinity(), kNowhere};
    for_each(n, [&](int i) { keep_larger(best, {f(i), i}); });
    for (int mask = Block::kWarpSize / 2; mask > 0; mask /= 2) {
      keep_larger(best,
                  {block_.shuffle_xor(best.value, mask), block_.shuffle_xor(best.index, mask)});
    }
    BlockMemory& memory = block_.memory();
    S* values = memory.template values<S>();
    if (lane() == 0) {
      values[warp()] = best.value;
      memory.indices[warp()] = best.index;
    }
    block_.sync();
    best = {values[0], memory.indices[0]};
    for (int w = 1; w < kWarps; ++w) keep_larger(best, {values[w], memory.indices[w]});
    if (best.index == kNowhere) best.index = -1;
    return best;
  }

  // Slots follow the order of i, one piece of kThreads elements at a time. Two arrays of counts
  // alternate: a warp may write the next piece's counts before others have read this piece's.
  template <class Wanted, class Store>
  RK_FN RK_INLINE int compact(int n, Wanted&& wanted, Store&& store) const {
    BlockMemory& memory = block_.memory();
    block_.sync();
    int before = 0;
    int piece = 0;
    for (int first = 0; first < n; first += Block::kThreads) {
      const int i = first + block_.thread();
      const bool chosen = i < n && wanted(i);
      const unsigned chosen_lanes = block_.ballot(chosen);
      int* counts = memory.counts[piece];
      if (lane() == 0) counts[warp()] = block_.count(chosen_lanes);
      block_.sync();
      int slot = before + block_.count(chosen_lanes & ((1U << lane()) - 1));
      for (int w = 0; w < kWarps; ++w) {
        if (w < warp()) slot += counts[w];
        before += counts[w];
      }
      if (chosen) store(i, slot);
      piece = 1 - piece;
    }
    block_.sync();
    return before;
  }

  // The sum over a warp's threads. Both lanes of a pair add the same two numbers, so all lanes end
  // with the same bits.
  template <class S> RK_FN RK_INLINE S warp_sum(S value) const {
    for (int mask = Block::kWarpSize / 2; mask > 0; mask /= 2) {
      value += block_.shuffle_xor(value, mask);
    }
    return value;
  }

 private:
  static constexpr int kWarps = Block::kThreads / Block::kWarpSize;
  static_assert(kWarps * Block::kWarpSize == Block::kThreads && kWarps <= BlockMemory::kWarps);
  static constexpr int kNowhere = std::numeric_limits<int>::max();

  // Collective; ends with a barrier, and the caller has begun with one.
  template <class S> RK_FN RK_INLINE S add_up(S own) const {
    own = warp_sum(own);
    S* shares = block_.memory().template values<S>();
    if (lane() == 0) shares[warp()] = own;
    block_.sync();
    S total = shares[0];
    for (int w = 1; w < kWarps; ++w) total += shares[w];
    return total;
  }

  RK_FN RK_INLINE int warp() const { return block_.thread() / Block::kWarpSize; }
  RK_FN RK_INLINE int lane() const { return block_.thread() % Block::kWarpSize; }

  // Equal values: keeps the smaller index. Never keeps a NaN.
  template <class S>
  RK_FN RK_INLINE static void keep_larger(ValueIndex<S>& best, const ValueIndex<S>& other) {
    const bool earlier = other.value == best.value && other.index < best.index;
    if (other.value > best.value || earlier) best = other;
  }

  Block block_;
};

// The team that a block's threads make, for code that needs no more than the contract of
// kernels/team.h: of one thread on the CPU it is a SerialTeam, whose loops are vectorised.
template <class Block> RK_FN RK_INLINE BlockTeam<Block> team_of(const Block& block) {
  return BlockTeam<Block>(block);
}

}  // namespace rk
