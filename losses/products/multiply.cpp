#include "losses/products/multiply.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "engine/device/gemm.h"
#include "kernels/flush_denormals.h"

#include <algorithm>
#include <type_traits>

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

// The row of C before rows of B are added to it.
template <class S> S* begin_row(const MatrixProduct<S>& product, std::int64_t i) {
  S* row = product.c.data + i * product.c.stride;
  if (!product.accumulate) std::fill_n(row, product.n(), S(0));
  return row;
}

// C = A B^T or C += A B^T
void multiply_rows(const Context& context, const MatrixProduct<double>& product) {
  const std::int64_t n = product.n(), k = product.k();
  parallel_for(context.threads(), product.m(), [&](std::int64_t i, int) {
    const double* row = product.a.data + i * product.a.stride;
    double* to = begin_row(product, i);
    for (std::int64_t j = 0; j < n; ++j) {
      const double* other = product.b.data + j * product.b.stride;
      double total = 0;
#pragma omp simd reduction(+ : total)
      for (std::int64_t p = 0; p < k; ++p) total += row[p] * other[p];
      to[j] += total;
    }
  });
}

// C = A^T B or C += A^T B
void multiply_columns(const Context& context, const MatrixProduct<double>& product) {
  const double* a = product.a.data;
  const std::int64_t stride = product.a.stride;
  parallel_for(context.threads(), product.m(), [&](std::int64_t i, int) {
    add_rows(
        product.n(), 0, product.k(), [&](std::int64_t p) { return a[p * stride + i]; },
        product.b.data, product.b.stride, begin_row(product, i));
  });
}

}  // namespace

template <class S> void multiply_few(const Context& context, const MatrixProduct<S>& product) {
  constexpr std::int64_t kBlock = 16;
  const std::int64_t k = product.k();
  parallel_for(context.threads(), product.m(), [&](std::int64_t i, int) {
    const FlushDenormals flush;
    const S* row = product.a.data + i * product.a.stride;
    S* sums = begin_row(product, i);
    for (std::int64_t begin = 0; begin < k; begin += kBlock) {
      const std::int64_t end = std::min(begin + kBlock, k);
      if (!any(row + begin, end - begin)) continue;
      add_rows(
          product.n(), begin, end, [&](std::int64_t p) { return row[p]; }, product.b.data,
          product.b.stride, sums);
    }
  });
}
template void multiply_few(const Context&, const MatrixProduct<float>&);
template void multiply_few(const Context&, const MatrixProduct<double>&);

template <class S> void multiply(const Context& context, const MatrixProduct<S>& product) {
  if constexpr (std::is_same_v<S, float>) {
    gemm(context, product);
  } else {
    expect(!product.a.transposed || !product.b.transposed,
           "[multiply] expected at most one transposed factor in double");
    if (product.b.transposed) return multiply_rows(context, product);
    if (product.a.transposed) return multiply_columns(context, product);
    multiply_few(context, product);
  }
}
template void multiply(const Context&, const MatrixProduct<float>&);
template void multiply(const Context&, const MatrixProduct<double>&);

}  // namespace rk
