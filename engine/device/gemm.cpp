#include "engine/device/gemm.h"
#include "engine/base/error.h"
#include "engine/device/cuda/context.h"

#include <oneapi/dnnl/dnnl.h>

namespace rk {

void gemm(const Context& context, Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k,
          float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
          float beta, float* c, std::int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (context.on_gpu()) {
    return context.cuda().gemm(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }
  const dnnl_status_t status = dnnl_sgemm(static_cast<char>(op_a), static_cast<char>(op_b), m, n, k,
                                          alpha, a, lda, b, ldb, beta, c, ldc);
  if (status != dnnl_success) {
    fail<DeviceError>("[gemm] oneDNN refused m={} n={} k={} (status {})", m, n, k,
                      static_cast<int>(status));
  }
}

}  // namespace rk
