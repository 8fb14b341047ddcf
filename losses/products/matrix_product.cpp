#include "losses/products/matrix_product.h"

#include "engine/base/parallel.h"
#include "engine/device/gemm.h"
#include "kernels/flush_denormals.h"

#include <algorithm>

namespace rk {
namespace {

template <class S> bool any(const S* values, std::int64_t count) {
  int found = 0;
#pragma omp simd reduction(| : found)
  for (std::int64_t k = 0; k < count; ++k) found |= values[k] != 0 ? 1 : 0;
  return found != 0;
}

// row_of_c += the sum over p of factor(p) * row p of B
template <class S, class F>
void add_rows(std::int64_t n, std::int64_t begin, std::int64_t end, F&& factor, const S* b,
              std::int64_t ldb, S* row_of_c) {
  for (std::int64_t p = begin; p < end; ++p) {
    const S f = factor(p);
    if (f == 0) continue;
    const S* row = b + p * ldb;
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) row_of_c[j] += f * row[j];
  }
}

template <class S> void scale_row(std::int64_t n, S beta, S* row_of_c) {
  for (std::int64_t j = 0; j < n; ++j) row_of_c[j] = beta == 0 ? 0 : beta * row_of_c[j];
}

}  // namespace

template <class S>
void product_of_few(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                    const S* a, std::int64_t lda, const S* b, std::int64_t ldb, S beta, S* c,
                    std::int64_t ldc) {
  constexpr std::int64_t kBlock = 16;
  parallel_for(context.threads(), m, [&](std::int64_t i, int) {
    const FlushDenormals flush;
    const S* row = a + i * lda;
    scale_row(n, beta, c + i * ldc);
    for (std::int64_t begin = 0; begin < k; begin += kBlock) {
      const std::int64_t end = std::min(begin + kBlock, k);
      if (!any(row + begin, end - begin)) continue;
      add_rows(
          n, begin, end, [&](std::int64_t p) { return row[p]; }, b, ldb, c + i * ldc);
    }
  });
}

template void product_of_few(const Context&, std::int64_t, std::int64_t, std::int64_t, const float*,
                             std::int64_t, const float*, std::int64_t, float, float*, std::int64_t);
template void product_of_few(const Context&, std::int64_t, std::int64_t, std::int64_t,
                             const double*, std::int64_t, const double*, std::int64_t, double,
                             double*, std::int64_t);

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
  product_of_few(context, m, n, k, a, lda, b, ldb, beta, c, ldc);
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
    scale_row(n, beta, c + i * ldc);
    add_rows(
        n, 0, k, [&](std::int64_t p) { return a[p * lda + i]; }, b, ldb, c + i * ldc);
  });
}

}  // namespace rk
