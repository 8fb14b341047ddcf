// The team a row kernel is written over. One row of a loss (one query against its gallery) is
// computed by one team; the same source runs on
//   SerialTeam  one member, here: the CPU product, rows in parallel over cores, inner loops
//               vectorised
//   ThreadTeam  2 to 4 std::threads, tests/race: finds missing barriers under ThreadSanitizer
//   BlockTeam   one CUDA block: block_team.h, cuda_block.cuh
//
// Contract:
//  1. for_each(n, f) calls f(0..n-1), each exactly once, by an unspecified member, in no order,
//     with no barrier before or after. The member that gets an index may differ from call to call.
//  2. sync() orders all memory of the team and is reached by all members at the same line.
//  3. sum, sums, arg_max, compact are collective: called by all members, they begin and end with a
//     barrier and give all members the same value. f sees everything written before.
//  4. A member keeps no state of an element across a barrier: such state goes to scratch.
//  5. No thread index, shuffle, atomic or shared memory in a row kernel; gather, do not scatter, so
//     that the result does not depend on timing.
//  6. Scratch comes from the caller, uninitialised (the tests fill it with NaN).
//  7. Rows do not communicate: sums over rows are a second kernel, in fixed order.
//  8. Ties are ranked by (value, index); what that means is said per loss.
//
// Arrays of a row are padded to kLanes elements (pad()) and start on 64 bytes, so that loops over
// padded lengths have no remainder.
#pragma once

#include "engine/base/integers.h"
#include "engine/device/buffer.h"

#include <algorithm>
#include <cstdint>
#include <limits>

// RK_FN: code that a team runs; device-only under nvcc, which then sees no host team. RK_BOTH: code
// that the host calls too, to size scratch.
#ifdef __CUDACC__
#define RK_FN __device__
#define RK_BOTH __host__ __device__
#define RK_INLINE __forceinline__
#else
#define RK_FN
#define RK_BOTH
// A loop that is not inlined keeps its closure in memory and does not vectorise.
#define RK_INLINE [[gnu::always_inline]] inline
#endif

namespace rk {

inline constexpr int kLanes = 16;

RK_BOTH constexpr int pad(int n) { return round_up(n, kLanes); }

template <class S> struct ValueIndex {
  S value;
  int index;
};

// Hands out pieces of a row's scratch. The same calls give the same addresses to every member.
// Constructed from a null pointer it only counts bytes, which tells how much a kernel needs.
class Scratch {
 public:
  RK_BOTH explicit Scratch(void* memory) : memory_(static_cast<unsigned char*>(memory)) {}

  template <class T> RK_BOTH T* take(int n) {
    unsigned char* piece = memory_ ? memory_ + used_ : nullptr;
    constexpr std::int64_t kLine = Buffer::kAlignment;
    used_ += round_up(static_cast<std::int64_t>(sizeof(T)) * pad(n), kLine);
    return reinterpret_cast<T*>(piece);
  }
  RK_BOTH std::int64_t bytes() const { return used_; }

 private:
  unsigned char* memory_;
  std::int64_t used_ = 0;
};

#ifndef __CUDACC__
class SerialTeam {
 public:
  RK_INLINE void sync() const {}

  // Iterations are independent by contract, which is what `omp simd` asks for.
  template <class F> RK_INLINE void for_each(int n, F&& f) const {
#pragma omp simd
    for (int i = 0; i < n; ++i) f(i);
  }

  // The sum of f(i). f may also write to element i of an array.
  template <class F> RK_INLINE auto sum(int n, F&& f) const {
    decltype(f(0)) total = 0;
#pragma omp simd reduction(+ : total)
    for (int i = 0; i < n; ++i) total += f(i);
    return total;
  }

  // out[r] = the sum over i of f(r, i), for r in [0, rows).
  template <class S, class F> RK_INLINE void sums(int rows, int n, S* out, F&& f) const {
    int r = 0;
    // Four sums at a time: f's loads of an element serve all four, and their additions overlap.
    for (; r + 4 <= rows; r += 4) {
      S a = 0;
      S b = 0;
      S c = 0;
      S d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
      for (int i = 0; i < n; ++i) {
        a += f(r, i);
        b += f(r + 1, i);
        c += f(r + 2, i);
        d += f(r + 3, i);
      }
      out[r] = a;
      out[r + 1] = b;
      out[r + 2] = c;
      out[r + 3] = d;
    }
    for (; r < rows; ++r) {
      out[r] = sum(n, [&](int i) { return f(r, i); });
    }
  }

  // The largest f(i) and the smallest index that has it; {-infinity, -1} if n is 0 or all are NaN.
  template <class F> RK_INLINE auto arg_max(int n, F&& f) const {
    using S = decltype(f(0));
    S best = -std::numeric_limits<S>::infinity();
    int block = 0;  // start of the first block that contains `best`
    constexpr int kBlock = 8 * kLanes;
    for (int first = 0; first < n; first += kBlock) {
      const int last = std::min(n, first + kBlock);
      S largest = best;
#pragma omp simd reduction(max : largest)
      for (int i = first; i < last; ++i) {
        const S value = f(i);
        largest = value > largest ? value : largest;
      }
      // clang++ starts a max reduction from the lowest finite number, which exceeds -infinity.
      if (largest == std::numeric_limits<S>::lowest()) {
        largest = best;
        for (int i = first; i < last; ++i) largest = std::max<S>(largest, f(i));
      }
      if (largest > best) block = first;
      best = largest;
    }
    for (int i = block; i < n; ++i) {
      if (f(i) == best) return ValueIndex<S>{best, i};
    }
    return ValueIndex<S>{best, -1};
  }

  // Calls store(i, slot) for every wanted i, with slots 0, 1, ... in the order of i. Returns the
  // number of slots.
  template <class Wanted, class Store>
  RK_INLINE int compact(int n, Wanted&& wanted, Store&& store) const {
    int count = 0;
    for (int i = 0; i < n; ++i) {
      if (wanted(i)) store(i, count++);
    }
    return count;
  }
};
#endif

}  // namespace rk
