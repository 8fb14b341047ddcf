// In place of engine/device/cuda/cublas.cpp: the functions of cuBLAS that CudaContext calls, on the
// host.
#include "engine/device/cuda/cublas.h"

#include "engine/base/error.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/cuda/stream.h"
#include "tests/host_gpu/rounding.h"

#include <vector>

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace rk {
namespace {

// A matrix in cuBLAS's order: columns one after another, `stride` numbers apart.
template <class T> struct Columns {
  T* data;
  std::int64_t rows, columns, stride;
  T& at(std::int64_t row, std::int64_t column) const { return data[column * stride + row]; }

  void check(const char* what) const {
    expect(rows > 0 && columns > 0 && stride >= rows,
           "[gemm] cuBLAS takes no matrix of {} columns of {} numbers, {} apart", columns, rows,
           stride);
    const auto elements = static_cast<std::size_t>((columns - 1) * stride + rows);
    host_gpu::expect_kind(host_gpu::Kind::kDevice, data, elements * sizeof(T), what);
  }
};

struct Product {
  Columns<const float> a, b;
  bool a_transposed, b_transposed;
  Columns<float> c;
  std::int64_t k;
  bool accumulate;

  // cuBLAS has kernels of its own for each form and size.
  std::string kernel() const {
    return fmt::format("A{} B{} of {}, {}, {}", a_transposed ? "^T" : "", b_transposed ? "^T" : "",
                       c.rows, c.columns, k);
  }

  // Without TF32, as cuBLAS is told to multiply. Rounds once.
  void compute() const {
    std::vector<double> rows(static_cast<std::size_t>(c.rows * k)),
        columns(static_cast<std::size_t>(c.columns * k)),
        sums(static_cast<std::size_t>(c.rows * c.columns));
    for (std::int64_t q = 0; q < k; ++q) {
      for (std::int64_t i = 0; i < c.rows; ++i) {
        rows[static_cast<std::size_t>(i * k + q)] =
            static_cast<double>(a_transposed ? a.at(q, i) : a.at(i, q));
      }
      for (std::int64_t j = 0; j < c.columns; ++j) {
        columns[static_cast<std::size_t>(j * k + q)] =
            static_cast<double>(b_transposed ? b.at(j, q) : b.at(q, j));
      }
    }
    for (std::int64_t j = 0; j < c.columns; ++j) {
      for (std::int64_t i = 0; i < c.rows; ++i) {
        const double* row = rows.data() + i * k;
        const double* column = columns.data() + j * k;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t q = 0; q < k; ++q) sum += row[q] * column[q];
        sums[static_cast<std::size_t>(j * c.rows + i)] = sum;
      }
    }
    host_gpu::reorder(sums, static_cast<double>(k));
    for (std::int64_t j = 0; j < c.columns; ++j) {
      for (std::int64_t i = 0; i < c.rows; ++i) {
        const double sum = sums[static_cast<std::size_t>(j * c.rows + i)];
        float& place = c.at(i, j);
        place = static_cast<float>(accumulate ? sum + static_cast<double>(place) : sum);
      }
    }
  }
};

cublasStatus_t create(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_stream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_workspace(cublasHandle_t, void* workspace, std::size_t bytes) {
  host_gpu::expect_kind(host_gpu::Kind::kDevice, workspace, bytes, "cuBLAS's workspace");
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_math_mode(cublasHandle_t, cublasMath_t mode) {
  return mode == CUBLAS_PEDANTIC_MATH ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
const char* status_string(cublasStatus_t) { return "not supported"; }

cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t form_of_a, cublasOperation_t form_of_b,
                    int m, int n, int k, const float* alpha, const float* a, int a_stride,
                    const float* b, int b_stride, const float* beta, float* c, int c_stride) {
  if (*alpha != 1 || (*beta != 0 && *beta != 1)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool a_transposed = form_of_a == CUBLAS_OP_T, b_transposed = form_of_b == CUBLAS_OP_T;
  const Product product{
      .a = {a, a_transposed ? k : m, a_transposed ? m : k, a_stride},
      .b = {b, b_transposed ? n : k, b_transposed ? k : n, b_stride},
      .a_transposed = a_transposed,
      .b_transposed = b_transposed,
      .c = {c, m, n, c_stride},
      .k = k,
      .accumulate = *beta == 1,
  };
  product.a.check("a product's A");
  product.b.check("a product's B");
  product.c.check("a product's C");
  host_gpu::put(handle->stream, product.kernel(), [product] { product.compute(); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

Cublas::Cublas()
    : create(rk::create),
      destroy(rk::destroy),
      set_stream(rk::set_stream),
      set_workspace(rk::set_workspace),
      set_math_mode(rk::set_math_mode),
      gemm(rk::gemm),
      status_string(rk::status_string) {}

void Cublas::check(cublasStatus_t status, const char* what) const {
  if (status != CUBLAS_STATUS_SUCCESS) fail<DeviceError>("[{}] {}", what, status_string(status));
}

}  // namespace rk
