// The 16-bit elements of tensors on a GPU (kernels/element.h). CUDA's types, whose conversions
// compile for the host too and round the same there.
#pragma once

#include "engine/base/dtype.h"
#include "kernels/element.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace rk {

template <> struct DTypeOf<__half> { static constexpr DType value = DType::kFloat16; };
template <> struct DTypeOf<__nv_bfloat16> { static constexpr DType value = DType::kBfloat16; };

template <> struct Element<__half> {
  RK_FN RK_INLINE static float widen(__half x) { return __half2float(x); }
  RK_FN RK_INLINE static __half narrow(float x) { return __float2half_rn(x); }
};

template <> struct Element<__nv_bfloat16> {
  RK_FN RK_INLINE static float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
  RK_FN RK_INLINE static __nv_bfloat16 narrow(float x) { return __float2bfloat16_rn(x); }
};

}  // namespace rk
