// The few vector operations that channel kernels and searches need, over 16 (AVX-512), 8 (AVX2) or
// 1 lanes, so that each is written once. Lanes<L>::Bits holds one bit a lane: keeping the signs of
// a ReLU takes 1/32 of the tensor's memory instead of a second copy. store_bytes() stores a V of
// small whole numbers as bytes. max(a, b) is `a` if one of them is NaN, so that a ReLU, max(x, 0),
// keeps NaN.
//
// stream() stores past the caches, so that a pass over a tensor larger than the caches does not
// first read the lines it overwrites. Its address must be aligned to the vector, and other threads
// see the values only after stream_fence().
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace rk {

template <int L> struct Lanes;

template <> struct Lanes<1> {
  using V = float;
  using Bits = std::uint8_t;
  static V load(const float* p) { return *p; }
  static void store(float* p, V v) { *p = v; }
  static V all(float x) { return x; }
  static void stream(float* p, V v) { *p = v; }
  static V fma(V a, V b, V c) {
#if defined(__FMA__)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
  }
  static V max(V a, V b) { return std::max(a, b); }
  static Bits positive(V v) { return v > 0 ? 1 : 0; }
  static V keep(Bits bits, V v) { return bits != 0 ? v : 0.0F; }
  static Bits greater(V a, V b) { return a > b ? 1 : 0; }
  static V select(Bits bits, V a, V b) { return bits != 0 ? a : b; }
  static Bits equal(const std::uint8_t* p, std::uint8_t value) { return *p == value ? 1 : 0; }
  static void store_bytes(std::uint8_t* p, V v) { *p = static_cast<std::uint8_t>(v); }
};

#if defined(__AVX2__) && defined(__FMA__)
template <> struct Lanes<8> {
  using V = __m256;
  using Bits = std::uint8_t;
  static V load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static V all(float x) { return _mm256_set1_ps(x); }
  static void stream(float* p, V v) { _mm256_stream_ps(p, v); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V max(V a, V b) { return _mm256_max_ps(b, a); }
  static Bits positive(V v) {
    return positive_mask(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_GT_OQ));
  }
  static V keep(Bits bits, V v) {
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i set = _mm256_and_si256(_mm256_set1_epi32(bits), lane);
    return _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, lane)));
  }
  static Bits greater(V a, V b) { return positive_mask(_mm256_cmp_ps(a, b, _CMP_GT_OQ)); }
  static V select(Bits bits, V a, V b) {
    const V all_set = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    return _mm256_blendv_ps(b, a, keep(bits, all_set));
  }
  static Bits equal(const std::uint8_t* p, std::uint8_t value) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    const __m128i same = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(value)));
    return static_cast<Bits>(_mm_movemask_epi8(same));
  }
  static void store_bytes(std::uint8_t* p, V v) {
    float values[8];
    store(values, v);
    for (int l = 0; l < 8; ++l) p[l] = static_cast<std::uint8_t>(values[l]);
  }

 private:
  static Bits positive_mask(__m256 mask) { return static_cast<Bits>(_mm256_movemask_ps(mask)); }
};
#endif

#if defined(__AVX512F__)
template <> struct Lanes<16> {
  using V = __m512;
  using Bits = std::uint16_t;
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static V all(float x) { return _mm512_set1_ps(x); }
  static void stream(float* p, V v) { _mm512_stream_ps(p, v); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  // The masked form: g++ 12 warns about an undefined operand inside the plain one.
  static V max(V a, V b) { return _mm512_maskz_max_ps(0xFFFF, b, a); }
  static Bits positive(V v) { return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GT_OQ); }
  static V keep(Bits bits, V v) { return _mm512_maskz_mov_ps(bits, v); }
  static Bits greater(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  static V select(Bits bits, V a, V b) { return _mm512_mask_mov_ps(b, bits, a); }
  static Bits equal(const std::uint8_t* p, std::uint8_t value) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i same = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(value)));
    return static_cast<Bits>(_mm_movemask_epi8(same));
  }
  static void store_bytes(std::uint8_t* p, V v) {
    const __m128i bytes = _mm512_maskz_cvtepi32_epi8(0xFFFF, _mm512_maskz_cvtps_epi32(0xFFFF, v));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }
};
#endif

// Calls f(Lanes<L>{}) with the most lanes this build has that divide `width`.
template <class F> auto with_lanes([[maybe_unused]] std::int64_t width, F&& f) {
#if defined(__AVX512F__)
  if (width % 16 == 0) return f(Lanes<16>{});
#endif
#if defined(__AVX2__) && defined(__FMA__)
  if (width % 8 == 0) return f(Lanes<8>{});
#endif
  return f(Lanes<1>{});
}

// The number of lanes with_lanes() picks.
inline std::int64_t lane_count(std::int64_t width) {
  return with_lanes(width, []<int N>(Lanes<N>) { return std::int64_t{N}; });
}

inline void stream_fence() {
#if defined(__AVX2__)
  _mm_sfence();
#endif
}

}  // namespace rk
