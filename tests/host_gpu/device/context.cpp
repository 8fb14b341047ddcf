// In place of engine/device/cuda/context.cpp. Work is done at once, but copies to the host arrive
// there only with synchronize(), or when a mark behind them is waited for.
#include "engine/device/cuda/context.h"

#include "engine/base/error.h"
#include "engine/device/precision.h"
#include "kernels/half_element.h"
#include "tests/host_gpu/device/memory.h"
#include "tests/host_gpu/device/stream.h"
#include "tests/host_gpu/rounding.h"

#include <cstring>
#include <vector>

namespace rk {

using host_gpu::expect_kind;
using host_gpu::Kind;
using host_gpu::put;

struct CudaContext::State {
  host_gpu::Downloads downloads;
  std::string name = "the host as a GPU";
};

namespace {

// cuBLAS has kernels of its own for each form and size.
std::string kernel_of(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto form = [](Op op) { return op == Op::kTranspose ? "^T" : ""; };
  return fmt::format("A{} B{} of {}, {}, {}", form(op_a), form(op_b), m, n, k);
}

// The bytes that a matrix of that shape spans in memory.
std::size_t bytes_of(std::int64_t rows, std::int64_t columns, std::int64_t stride, DType type) {
  return static_cast<std::size_t>((rows - 1) * stride + columns) * size_of(type);
}

// op(matrix) as a dense array, rows by columns.
std::vector<double> values(const void* matrix, DType type, Op op, std::int64_t rows,
                           std::int64_t columns, std::int64_t stride) {
  std::vector<double> all(static_cast<std::size_t>(rows * columns));
  with_type(type, [&]<class T>() {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const T x =
            static_cast<const T*>(matrix)[op == Op::kNone ? r * stride + c : c * stride + r];
        all[static_cast<std::size_t>(r * columns + c)] = static_cast<double>(Element<T>::widen(x));
      }
    }
  });
  return all;
}

Op other(Op op) { return op == Op::kNone ? Op::kTranspose : Op::kNone; }

// op(A) op(B) with the bias, dense. Float32 is multiplied without TF32, as in cublas_lt.cpp.
std::vector<double> products(const GemmShape& s, const GemmPlaces& places) {
  const std::vector<double> a = values(places.a, s.in, s.op_a, s.m, s.k, s.lda);
  const std::vector<double> b = values(places.b, s.in, other(s.op_b), s.n, s.k, s.ldb);
  std::vector<double> bias(static_cast<std::size_t>(s.n), 0.0);
  if (places.bias != nullptr) bias = values(places.bias, s.out, Op::kNone, 1, s.n, s.n);
  std::vector<double> sums(static_cast<std::size_t>(s.m * s.n));
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      const double* row = a.data() + i * s.k;
      const double* column = b.data() + j * s.k;
      double sum = bias[static_cast<std::size_t>(j)];
#pragma omp simd reduction(+ : sum)
      for (std::int64_t p = 0; p < s.k; ++p) sum += row[p] * column[p];
      sums[static_cast<std::size_t>(i * s.n + j)] = sum;
    }
  }
  host_gpu::reorder(sums, static_cast<double>(s.k));
  return sums;
}

// Rounds once.
void compute(const GemmShape& s, const GemmPlaces& places) {
  const std::vector<double> sums = products(s, places);
  with_type(s.out, [&]<class T>() {
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) {
        double sum = sums[static_cast<std::size_t>(i * s.n + j)];
        T& place = static_cast<T*>(places.c)[i * s.ldc + j];
        if (s.accumulate) sum += static_cast<double>(Element<T>::widen(place));
        place = Element<T>::narrow(static_cast<float>(sum));
      }
    }
  });
}

}  // namespace

CudaContext::CudaContext(int device) : state_(std::make_unique<State>()) {
  expect(device == 0, "[device] expected 0, the only one, got {}", device);
}

CudaContext::~CudaContext() = default;

void CudaContext::use_in_this_thread() const {}

CudaStream CudaContext::stream() const { return reinterpret_cast<CudaStream>(&state_->downloads); }

const std::string& CudaContext::name() const { return state_->name; }

std::size_t CudaContext::free_bytes() const { return host_gpu::free_bytes(); }

void CudaContext::synchronize() const {
  host_gpu::refuse_in_capture("the GPU's work");
  state_->downloads.deliver(state_->downloads.count());
}

void CudaContext::upload(void* device, const void* host, std::size_t bytes) const {
  if (bytes == 0) return;
  // A copy of ordinary host memory may wait, which ends a capture.
  host_gpu::refuse_in_capture("copy to the GPU");
  expect_kind(Kind::kDevice, device, bytes, "copy to the GPU, its target");
  expect_kind(Kind::kHost, host, bytes, "copy to the GPU, its source");
  std::memcpy(device, host, bytes);
}

void CudaContext::download(void* host, const void* device, std::size_t bytes) const {
  if (bytes == 0) return;
  host_gpu::refuse_in_capture("copy from the GPU");
  expect_kind(Kind::kDevice, device, bytes, "copy from the GPU, its source");
  expect_kind(Kind::kHost, host, bytes, "copy from the GPU, its target");
  state_->downloads.add(host, device, bytes);
}

void CudaContext::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  expect_kind(Kind::kDevice, to, bytes, "copy within the GPU, its target");
  expect_kind(Kind::kDevice, from, bytes, "copy within the GPU, its source");
  put(stream(), [=] { std::memmove(to, from, bytes); });
}

void CudaContext::clear(void* device, std::size_t bytes) const {
  if (bytes == 0) return;
  expect_kind(Kind::kDevice, device, bytes, "clear memory of the GPU");
  put(stream(), [=] { std::memset(device, 0, bytes); });
}

void CudaContext::gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k,
                       float alpha, const float* a, std::int64_t lda, const float* b,
                       std::int64_t ldb, float beta, float* c, std::int64_t ldc) const {
  const GemmShape shape{
      .op_a = op_a, .op_b = op_b, .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc};
  put(stream(), kernel_of(op_a, op_b, m, n, k), [=] {
    const std::vector<double> sums = products(shape, {.a = a, .b = b});
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        float& place = c[i * ldc + j];
        // As in BLAS: with a beta of 0, C is not read.
        const double held = beta == 0 ? 0 : static_cast<double>(beta) * static_cast<double>(place);
        const double sum = sums[static_cast<std::size_t>(i * n + j)];
        place = static_cast<float>(static_cast<double>(alpha) * sum + held);
      }
    }
  });
}

struct CudaContext::Product {
  GemmShape shape;
  GemmPlaces places;
};

std::shared_ptr<const CudaContext::Product> CudaContext::prepare(const GemmShape& shape,
                                                                 const GemmPlaces& places) const {
  host_gpu::refuse_in_capture("the choice of a product");
  const auto& [op_a, op_b, m, n, k, lda, ldb, ldc, in, out, accumulate] = shape;
  const bool a_stands = op_a == Op::kNone, b_stands = op_b == Op::kNone;
  expect(out == in || out == DType::kFloat32, "[gemm] expected a result of the type of A and B");
  expect_kind(Kind::kDevice, places.a, bytes_of(a_stands ? m : k, a_stands ? k : m, lda, in),
              "a product's A");
  expect_kind(Kind::kDevice, places.b, bytes_of(b_stands ? k : n, b_stands ? n : k, ldb, in),
              "a product's B");
  expect_kind(Kind::kDevice, places.c, bytes_of(m, n, ldc, out), "a product's C");
  if (places.bias != nullptr) {
    expect_kind(Kind::kDevice, places.bias, bytes_of(1, n, n, out), "a product's bias");
  }
  return std::make_shared<const Product>(Product{shape, places});
}

void CudaContext::run(const Product& product) const {
  const GemmShape& s = product.shape;
  put(stream(), kernel_of(s.op_a, s.op_b, s.m, s.n, s.k),
      [s, places = product.places] { compute(s, places); });
}

}  // namespace rk
