// The matrix product that PreparedGemm (engine/device/gemm.h) prepares and runs every step.
#pragma once

#include "engine/base/dtype.h"

#include <cstdint>

namespace rk {

// How a matrix enters a product: as it is stored, or transposed.
enum class Op : char { kNone = 'N', kTranspose = 'T' };

// C = op(A) op(B) + bias, row major: op(A) is (m, k), op(B) is (k, n), C is (m, n); lda, ldb, ldc
// are row strides in elements of the matrices as stored.
struct GemmShape {
  Op op_a = Op::kNone, op_b = Op::kNone;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  DType in = DType::kFloat32;   // of A and B
  DType out = DType::kFloat32;  // of C and bias: equal to `in`, or float32
  bool accumulate = false;      // C += instead of C =
};

struct GemmPlaces {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;  // (n), added to every row of C; null: none
  void* c = nullptr;
};

}  // namespace rk
