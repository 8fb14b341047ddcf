// The 16-bit elements of tensors (kernels/element.h). CUDA's functions convert them on a GPU, our
// own on the host; both round the same way.
#pragma once

#include "engine/base/half.h"
#include "kernels/element.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace rk {

template <> struct Element<Float16> {
#ifdef __CUDACC__
  RK_FN RK_INLINE static float widen(Float16 x) { return __half2float(__ushort_as_half(x.bits)); }
  RK_FN RK_INLINE static Float16 narrow(float x) { return {__half_as_ushort(__float2half_rn(x))}; }
#else
  RK_INLINE static float widen(Float16 x) { return from_float16(x.bits); }
  RK_INLINE static Float16 narrow(float x) { return {to_float16(x)}; }
#endif
};

template <> struct Element<Bfloat16> {
#ifdef __CUDACC__
  RK_FN RK_INLINE static float widen(Bfloat16 x) {
    return __bfloat162float(__ushort_as_bfloat16(x.bits));
  }
  RK_FN RK_INLINE static Bfloat16 narrow(float x) {
    return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
  }
#else
  RK_INLINE static float widen(Bfloat16 x) { return from_bfloat16(x.bits); }
  RK_INLINE static Bfloat16 narrow(float x) { return {to_bfloat16(x)}; }
#endif
};

}  // namespace rk
