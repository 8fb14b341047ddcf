// Elements of tensors in kernels over blocks: float here, Float16 and Bfloat16 in half_element.h.
// All arithmetic is in float; an element is widened when it is loaded and rounded to nearest even
// when it is stored.
//
// A Pack is what a thread moves at once: kPack<T> elements are 16 bytes, the widest load there is.
// Arrays are aligned to 16 bytes; a pack starts at a multiple of its own size within its array.
#pragma once

#include "kernels/team.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>

// RK_UNROLL: for loops over arrays that must stay in registers. RK_UNROLL_BY(n): for loops that
// would need too many registers if more than n iterations ran side by side.
#ifdef __CUDACC__
#define RK_PRAGMA(text) _Pragma(#text)
#define RK_UNROLL RK_PRAGMA(unroll)
#define RK_UNROLL_BY(n) RK_PRAGMA(unroll n)
#else
#define RK_UNROLL
#define RK_UNROLL_BY(n)
#endif

namespace rk {

// ReLU: 0 where x is not above it. NaN stays NaN, as in the CPU's maximum with 0 (simd.h).
RK_FN RK_INLINE float rectified(float x) { return x <= 0 ? 0.0F : x; }

// n as an array bound; g++ warns that a dependent int used as a bound might change its sign.
template <int n> inline constexpr std::size_t kBound = static_cast<std::size_t>(n);

template <class T> struct Element;

template <> struct Element<float> {
  RK_FN RK_INLINE static float widen(float x) { return x; }
  RK_FN RK_INLINE static float narrow(float x) { return x; }
};

template <class T> inline constexpr int kPack = 16 / static_cast<int>(sizeof(T));

// Elements in their memory format.
template <class T, int kWidth> struct Pack {
  T values[kBound<kWidth>];

  RK_FN RK_INLINE float operator[](int k) const { return Element<T>::widen(values[k]); }
  RK_FN RK_INLINE void set(int k, float x) { values[k] = Element<T>::narrow(x); }
};

// The alignment that loads and stores of `bytes` may count on.
constexpr std::size_t pack_alignment(std::size_t bytes) {
  return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

// `place`, where kBytes are loaded or stored at once. A place that is not aligned ends the process
// on a GPU; the host, on which only tests run such kernels, refuses it.
template <std::size_t kBytes, class T> RK_FN RK_INLINE T* aligned(T* place) {
  constexpr std::size_t kAlignment = pack_alignment(kBytes);
#ifndef __CUDACC__
  if (reinterpret_cast<std::uintptr_t>(place) % kAlignment != 0) {
    throw std::logic_error("a kernel loads or stores a pack at a place that is not aligned");
  }
#endif
  return std::assume_aligned<kAlignment>(place);
}

template <int kWidth, class T> RK_FN RK_INLINE Pack<T, kWidth> load_pack(const T* from) {
  Pack<T, kWidth> pack;
  std::memcpy(static_cast<void*>(&pack), aligned<sizeof(pack)>(from), sizeof(pack));
  return pack;
}

// Loads from shared memory at every call: the compiler would hoist a plain load out of a loop, and
// its result would occupy registers throughout.
template <int kWidth> RK_FN RK_INLINE Pack<float, kWidth> load_shared_pack(const float* from) {
  static_assert(kWidth == 1 || kWidth == 2);
#ifdef __CUDACC__
  Pack<float, kWidth> pack;
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(from));
  if constexpr (kWidth == 2) {
    asm volatile("ld.volatile.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(pack.values[0]), "=f"(pack.values[1])
                 : "r"(at));
  } else {
    asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(pack.values[0]) : "r"(at));
  }
  return pack;
#else
  return load_pack<kWidth>(from);
#endif
}

template <int kWidth, class T> RK_FN RK_INLINE void store_pack(T* to, const Pack<T, kWidth>& pack) {
#ifdef __CUDACC__
  // nvcc splits a memcpy of four floats, or of four bytes, into stores of single bytes.
  if constexpr (sizeof(pack) == 16) {
    *reinterpret_cast<uint4*>(to) = std::bit_cast<uint4>(pack);
    return;
  } else if constexpr (sizeof(pack) == 4) {
    *reinterpret_cast<unsigned*>(to) = std::bit_cast<unsigned>(pack);
    return;
  }
#endif
  std::memcpy(static_cast<void*>(aligned<sizeof(pack)>(to)), &pack, sizeof(pack));
}

// Calls f.operator()<W>() with the widest pack of T that divides `width`: kPack<T> elements or one.
template <class T, class F> RK_FN RK_INLINE void with_pack(std::int64_t width, F&& f) {
  if (width % kPack<T> == 0) {
    f.template operator()<kPack<T>>();
  } else {
    f.template operator()<1>();
  }
}

}  // namespace rk
