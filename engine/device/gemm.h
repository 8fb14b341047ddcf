// Single-precision matrix product, row major:  C = alpha * op(A) * op(B) + beta * C,
// op(A) is (m, k), op(B) is (k, n), C is (m, n); lda, ldb, ldc are row strides in elements of the
// matrices as stored, which lie on the device of the context. Accumulates in float32 (on a GPU
// without TF32, the same bits every time). beta = 0 overwrites C, whatever it held.
#pragma once

#include "engine/device/context.h"
#include "engine/device/matrix_op.h"

#include <cstdint>

namespace rk {

void gemm(const Context& context, Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k,
          float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
          float beta, float* c, std::int64_t ldc);

}  // namespace rk
