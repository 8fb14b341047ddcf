// A block of a GPU's threads. A row's team is one block of 256: at the size of a batch its 8 warps
// hide each other's latencies, and the hundreds of rows fill the GPU.
#pragma once

#include "kernels/block_team.h"

#include <cstdint>

namespace rk {

class CudaBlock {
 public:
  static constexpr int kThreads = 256;
  static constexpr int kWarpSize = 32;

  // `memory` lies in shared memory.
  RK_FN explicit CudaBlock(BlockMemory* memory) : memory_(memory) {}

  RK_FN RK_INLINE int thread() const { return static_cast<int>(threadIdx.x); }
  RK_FN RK_INLINE int index() const { return static_cast<int>(blockIdx.x); }
  RK_FN RK_INLINE int blocks() const { return static_cast<int>(gridDim.x); }
  RK_FN RK_INLINE void sync() const { __syncthreads(); }
  template <class T> RK_FN RK_INLINE T shuffle_xor(T value, int mask) const {
    return __shfl_xor_sync(kAll, value, mask);
  }
  RK_FN RK_INLINE unsigned ballot(bool flag) const { return __ballot_sync(kAll, flag); }
  RK_FN RK_INLINE int count(unsigned bits) const { return __popc(bits); }
  RK_FN RK_INLINE BlockMemory& memory() const { return *memory_; }
  RK_FN RK_INLINE void add(std::int32_t* counter, std::int32_t by) const { atomicAdd(counter, by); }
  RK_FN RK_INLINE void add(std::uint32_t* counter, std::uint32_t by) const {
    atomicAdd(counter, by);
  }
  RK_FN RK_INLINE void add(std::uint64_t* counter, std::uint64_t by) const {
    atomicAdd(reinterpret_cast<unsigned long long*>(counter), by);
  }

 private:
  static constexpr unsigned kAll = 0xFFFFFFFFU;
  BlockMemory* memory_;
};

}  // namespace rk
