#include "engine/device/gemm.h"

#include "engine/base/error.h"
#include "engine/device/cuda/context.h"

#include <oneapi/dnnl/dnnl.h>

#include <new>

namespace rk {
namespace {

void check(const MatrixProduct<float>& product) {
  const auto& [a, b, c, accumulate] = product;
  const std::int64_t a_rows = a.transposed ? a.columns : a.rows;
  const std::int64_t b_rows = b.transposed ? b.columns : b.rows;
  const std::int64_t b_columns = b.transposed ? b.rows : b.columns;
  expect(a_rows == c.rows && b_rows == product.k() && b_columns == c.columns,
         "[gemm] expected (m, k) (k, n) = (m, n), got ({}, {}) ({}, {}) = ({}, {})", a_rows,
         product.k(), b_rows, b_columns, c.rows, c.columns);
}

}  // namespace

void gemm(const Context& context, const MatrixProduct<float>& product) {
  check(product);
  const std::int64_t m = product.m(), n = product.n(), k = product.k();
  if (m == 0 || n == 0) return;
  const auto& [a, b, c, accumulate] = product;
  if (k == 0) {  // an empty sum, which the libraries refuse
    for (std::int64_t i = 0; i < m && !accumulate; ++i) {
      context.clear(c.data + i * c.stride, static_cast<std::size_t>(n) * sizeof(float));
    }
    return;
  }
  if (context.on_gpu()) return context.cuda().gemm(product);
  const auto form = [](const Factor<float>& factor) { return factor.transposed ? 'T' : 'N'; };
  const dnnl_status_t status = dnnl_sgemm(form(a), form(b), m, n, k, 1.0F, a.data, a.stride, b.data,
                                          b.stride, accumulate ? 1.0F : 0.0F, c.data, c.stride);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success) {
    fail<DeviceError>("[gemm] oneDNN refused m={} n={} k={} (status {})", m, n, k,
                      static_cast<int>(status));
  }
}

}  // namespace rk
