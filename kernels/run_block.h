// One block of a kernel of kernels/launch.h, with the memory that its threads share, if it has any.
#pragma once

#include "kernels/team.h"

namespace rk {

template <class Kernel, int kThreads>
concept SharesMemory = requires {
  typename Kernel::template Shared<kThreads>;
};

struct NoSharedMemory {};

template <class Kernel, int kThreads> struct SharedMemoryOf { using Type = NoSharedMemory; };
template <class Kernel, int kThreads>
requires SharesMemory<Kernel, kThreads>
struct SharedMemoryOf<Kernel, kThreads> {
  using Type = typename Kernel::template Shared<kThreads>;
};

template <class Kernel, class Block>
RK_FN RK_INLINE void run_on_block(const Kernel& kernel, const Block& block,
                                  typename SharedMemoryOf<Kernel, Block::kThreads>::Type& shared) {
  if constexpr (SharesMemory<Kernel, Block::kThreads>) {
    kernel(block, shared);
  } else {
    kernel(block);
  }
}

}  // namespace rk
