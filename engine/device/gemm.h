// Matrix products in single precision (engine/device/matrix_product.h), of matrices that lie on the
// context's device. Accumulates in float32, on a GPU never in TF32; the same bits every time.
#pragma once

#include "engine/device/context.h"
#include "engine/device/matrix_product.h"

#include <memory>

namespace rk {

//   const Factor<float> gallery{embeddings, n, k, k};
//   gemm(context, {.a = {queries, m, k, k}, .b = transposed(gallery), .c = {scores, m, n, n}});
// Throws DeviceError if the device's library refuses the product, std::bad_alloc without memory.
void gemm(const Context& context, const MatrixProduct<float>& product);

// A product on fixed addresses, planned once and run every step. On the CPU it has its own scratch
// memory, for which gemm() may ask oneDNN at every call.
class PreparedGemm {
 public:
  PreparedGemm();  // to be assigned to before run()
  // As gemm(); no matrix may be empty.
  PreparedGemm(const Context& context, const MatrixProduct<float>& product);
  ~PreparedGemm();
  PreparedGemm(PreparedGemm&&) noexcept;
  PreparedGemm& operator=(PreparedGemm&&) noexcept;

  void run() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rk
