// In place of engine/device/cuda/context.cpp. Work is done at once, but what goes back to the host
// arrives there with synchronize(), and is NaN until then: a host that does not wait is found out.
#include "engine/device/cuda/context.h"

#include "engine/base/error.h"
#include "tests/host_gpu/device/memory.h"
#include "tests/host_gpu/device/stream.h"

#include <cstring>
#include <vector>

namespace rk {

using host_gpu::expect_kind;
using host_gpu::Kind;
using host_gpu::put;

struct CudaContext::State {
  struct Copy {
    void* to;
    std::vector<std::byte> bytes;
  };
  std::vector<Copy> downloads;  // not yet waited for
  std::string name = "the host as a GPU";
};

namespace {

// cuBLAS has kernels of its own for each form and size.
std::string product(const char* form, std::int64_t m, std::int64_t n, std::int64_t k) {
  return fmt::format("{} of {}, {}, {}", form, m, n, k);
}

}  // namespace

CudaContext::CudaContext(int device) : state_(std::make_unique<State>()) {
  expect(device == 0, "[device] expected 0, the only one, got {}", device);
}

CudaContext::~CudaContext() = default;

void CudaContext::use_in_this_thread() const {}

CudaStream CudaContext::stream() const { return reinterpret_cast<CudaStream>(state_.get()); }

const std::string& CudaContext::name() const { return state_->name; }

std::size_t CudaContext::free_bytes() const { return host_gpu::free_bytes(); }

void CudaContext::synchronize() const {
  host_gpu::refuse_in_capture("the GPU's work");
  for (const State::Copy& copy : state_->downloads) {
    std::memcpy(copy.to, copy.bytes.data(), copy.bytes.size());
  }
  state_->downloads.clear();
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
  const auto* from = static_cast<const std::byte*>(device);
  state_->downloads.push_back({host, {from, from + bytes}});
  host_gpu::fill_with_nan(host, bytes);
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
  const bool a_transposed = op_a == Op::kTranspose, b_transposed = op_b == Op::kTranspose;
  const std::string form =
      fmt::format("A{} B{}", a_transposed ? "^T" : "", b_transposed ? "^T" : "");
  put(stream(), product(form.c_str(), m, n, k), [=] {
    for (std::int64_t i = 0; i < m; ++i) {
      float* row = c + i * ldc;
      // As in BLAS: what a beta of 0 meets is not read.
      for (std::int64_t j = 0; j < n; ++j) row[j] = beta == 0 ? 0 : beta * row[j];
      if (b_transposed) {
        for (std::int64_t j = 0; j < n; ++j) {
          float total = 0;
#pragma omp simd reduction(+ : total)
          for (std::int64_t p = 0; p < k; ++p) {
            total += a[a_transposed ? p * lda + i : i * lda + p] * b[j * ldb + p];
          }
          row[j] += alpha * total;
        }
        continue;
      }
      for (std::int64_t p = 0; p < k; ++p) {
        const float factor = alpha * a[a_transposed ? p * lda + i : i * lda + p];
        const float* from = b + p * ldb;
        for (std::int64_t j = 0; j < n; ++j) row[j] += factor * from[j];
      }
    }
  });
}

}  // namespace rk
