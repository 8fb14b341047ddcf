// In place of engine/device/cuda/context.cpp. Work is done at once, but copies to the host arrive
// there only with synchronize(), or when a mark behind them is waited for.
#include "engine/device/cuda/context.h"

#include "engine/base/error.h"
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
std::string kernel_of(const MatrixProduct<float>& p) {
  const auto form = [](const Factor<float>& factor) { return factor.transposed ? "^T" : ""; };
  return fmt::format("A{} B{} of {}, {}, {}", form(p.a), form(p.b), p.m(), p.n(), p.k());
}

void expect_on_device(const float* data, std::int64_t rows, std::int64_t columns,
                      std::int64_t stride, const char* what) {
  expect(rows > 0 && columns > 0 && stride >= columns,
         "[gemm] cuBLAS takes no matrix of {} rows of {} numbers, {} apart", rows, columns, stride);
  const auto elements = static_cast<std::size_t>((rows - 1) * stride + columns);
  expect_kind(Kind::kDevice, data, elements * sizeof(float), what);
}

// The factor as a dense array, rows by columns.
std::vector<double> values(const Factor<float>& factor) {
  const std::int64_t rows = factor.transposed ? factor.columns : factor.rows;
  const std::int64_t columns = factor.transposed ? factor.rows : factor.columns;
  std::vector<double> all(static_cast<std::size_t>(rows * columns));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t place = factor.transposed ? c * factor.stride + r : r * factor.stride + c;
      all[static_cast<std::size_t>(r * columns + c)] = static_cast<double>(factor.data[place]);
    }
  }
  return all;
}

// A B, dense, without TF32, as cuBLAS is told to multiply.
std::vector<double> sums_of(const MatrixProduct<float>& p) {
  const std::int64_t m = p.m(), n = p.n(), k = p.k();
  const std::vector<double> a = values(p.a), b = values(transposed(p.b));
  std::vector<double> sums(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const double* row = a.data() + i * k;
      const double* column = b.data() + j * k;
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t q = 0; q < k; ++q) sum += row[q] * column[q];
      sums[static_cast<std::size_t>(i * n + j)] = sum;
    }
  }
  host_gpu::reorder(sums, static_cast<double>(k));
  return sums;
}

// Rounds once.
void compute(const MatrixProduct<float>& p) {
  const std::vector<double> sums = sums_of(p);
  for (std::int64_t i = 0; i < p.m(); ++i) {
    for (std::int64_t j = 0; j < p.n(); ++j) {
      float& place = p.c.data[i * p.c.stride + j];
      const double sum = sums[static_cast<std::size_t>(i * p.n() + j)];
      place = static_cast<float>(p.accumulate ? sum + static_cast<double>(place) : sum);
    }
  }
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

void CudaContext::gemm(const MatrixProduct<float>& product) const {
  const auto& [a, b, c, accumulate] = product;
  expect_on_device(a.data, a.rows, a.columns, a.stride, "a product's A");
  expect_on_device(b.data, b.rows, b.columns, b.stride, "a product's B");
  expect_on_device(c.data, c.rows, c.columns, c.stride, "a product's C");
  put(stream(), kernel_of(product), [product] { compute(product); });
}

}  // namespace rk
