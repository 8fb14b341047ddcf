#include "losses/products/matrix_product.h"

#include "engine/base/parallel.h"
#include "engine/device/gemm.h"

namespace rk {
namespace {

// row_of_c += sum over p of factor(p) * row p of B
template <class F>
void combine_rows(std::int64_t n, std::int64_t k, F&& factor, const double* b, std::int64_t ldb,
                  double beta, double* row_of_c) {
  for (std::int64_t j = 0; j < n; ++j) row_of_c[j] = beta == 0 ? 0 : beta * row_of_c[j];
  for (std::int64_t p = 0; p < k; ++p) {
    const double f = factor(p);
    const double* row = b + p * ldb;
    for (std::int64_t j = 0; j < n; ++j) row_of_c[j] += f * row[j];
  }
}

}  // namespace

void product_abt(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                 const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c,
                 std::int64_t ldc) {
  gemm(context, Op::kNone, Op::kTranspose, m, n, k, 1.0F, a, lda, b, ldb, 0.0F, c, ldc);
}

void product_abt(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                 const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double* c,
                 std::int64_t ldc) {
  parallel_for(context.threads(), m, [&](std::int64_t i, int) {
    for (std::int64_t j = 0; j < n; ++j) {
      double total = 0;
#pragma omp simd reduction(+ : total)
      for (std::int64_t p = 0; p < k; ++p) total += a[i * lda + p] * b[j * ldb + p];
      c[i * ldc + j] = total;
    }
  });
}

void product_ab(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta,
                float* c, std::int64_t ldc) {
  gemm(context, Op::kNone, Op::kNone, m, n, k, 1.0F, a, lda, b, ldb, beta, c, ldc);
}

void product_ab(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta,
                double* c, std::int64_t ldc) {
  parallel_for(context.threads(), m, [&](std::int64_t i, int) {
    combine_rows(
        n, k, [&](std::int64_t p) { return a[i * lda + p]; }, b, ldb, beta, c + i * ldc);
  });
}

void product_atb(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                 const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta,
                 float* c, std::int64_t ldc) {
  gemm(context, Op::kTranspose, Op::kNone, m, n, k, 1.0F, a, lda, b, ldb, beta, c, ldc);
}

void product_atb(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                 const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta,
                 double* c, std::int64_t ldc) {
  parallel_for(context.threads(), m, [&](std::int64_t i, int) {
    combine_rows(
        n, k, [&](std::int64_t p) { return a[p * lda + i]; }, b, ldb, beta, c + i * ldc);
  });
}

}  // namespace rk
