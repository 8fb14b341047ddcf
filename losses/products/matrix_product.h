// The matrix products of a loss, in either precision. Float uses engine/device/gemm.h, on either
// device; double, which only checks and tests use, is a plain loop over cores.
#pragma once

#include "engine/device/context.h"

#include <cstdint>

namespace rk {

// C = A B^T: A is (m, k), B is (n, k), C is (m, n).
void product_abt(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                 const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c,
                 std::int64_t ldc);
void product_abt(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                 const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double* c,
                 std::int64_t ldc);

// C = beta C + A B: A is (m, k), B is (k, n), C is (m, n).
void product_ab(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta,
                float* c, std::int64_t ldc);
void product_ab(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta,
                double* c, std::int64_t ldc);

// The same on the CPU if A has few non-zeros: each row of C is a sum of rows of B, added by
// one thread.
template <class S>
void product_of_few(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                    const S* a, std::int64_t lda, const S* b, std::int64_t ldb, S beta, S* c,
                    std::int64_t ldc);

// C = beta C + A^T B: A is (k, m), B is (k, n), C is (m, n).
void product_atb(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                 const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta,
                 float* c, std::int64_t ldc);
void product_atb(const Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                 const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta,
                 double* c, std::int64_t ldc);

}  // namespace rk
