// Matrix products in single precision (engine/device/matrix_product.h), of matrices that lie on the
// context's device. Accumulates in float32 (on a GPU without TF32, the same bits every time).
#pragma once

#include "engine/device/context.h"
#include "engine/device/matrix_product.h"

#include <memory>

namespace rk {

//   gemm(context, {.a = {queries, m, k, k}, .b = transposed({gallery, n, k, k}),
//                  .c = {scores, m, n, n}});
// All matrices float32, and no bias.
void gemm(const Context& context, const MatrixProduct& product);

// A product on fixed addresses, planned once and run every step, with the bias added in the same
// pass. In float32 as gemm(); on a GPU, A and B may be 16-bit: accumulation is in float32, with one
// rounding at the end.
class PreparedGemm {
 public:
  PreparedGemm();  // runs nothing
  // Throws DeviceError if the device's library does not support the product.
  PreparedGemm(const Context& context, const MatrixProduct& product);
  ~PreparedGemm();
  PreparedGemm(PreparedGemm&&) noexcept;
  PreparedGemm& operator=(PreparedGemm&&) noexcept;

  void run() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rk
