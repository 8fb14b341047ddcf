// Single-precision matrix product, row-major:  C = alpha * op(A) * op(B) + beta * C. op(A) is (m,
// k), op(B) is (k, n), C is (m, n); lda, ldb, ldc are row strides, in elements, of the matrices as
// stored. All lie on the context's device. Accumulates in float32 (on a GPU without TF32, the same
// bits every time). beta = 0 overwrites C, whatever it held.
#pragma once

#include "engine/device/context.h"
#include "engine/device/gemm_shape.h"

#include <cstdint>
#include <memory>

namespace rk {

void gemm(const Context& context, Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k,
          float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
          float beta, float* c, std::int64_t ldc);

// A product on fixed addresses, planned once and run every step, with the bias added in the same
// pass. In float32 as gemm(); on a GPU, A and B may be 16-bit: accumulation is in float32, with one
// rounding at the end.
class PreparedGemm {
 public:
  PreparedGemm();  // runs nothing
  // Throws DeviceError if the device's library does not support the product.
  PreparedGemm(const Context& context, const GemmShape& shape, const GemmPlaces& places);
  ~PreparedGemm();
  PreparedGemm(PreparedGemm&&) noexcept;
  PreparedGemm& operator=(PreparedGemm&&) noexcept;

  void run() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rk
