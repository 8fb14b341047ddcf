#include "engine/device/cuda/context.h"

#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/cublas.h"
#include "engine/device/cuda/error.h"

#include <limits>

namespace rk {
namespace {

// The size cuBLAS asks for on Hopper, so that it may choose any of its algorithms. We allocate it
// because a graph must not capture a workspace that cuBLAS allocates by itself.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

int as_int(std::int64_t value) {
  expect(value >= 0 && value <= std::numeric_limits<int>::max(),
         "[gemm] expected sizes below 2^31, got {}", value);
  return static_cast<int>(value);
}

}  // namespace

struct CudaContext::State {
  Cublas cublas;
  cudaStream_t stream = nullptr;
  cublasHandle_t handle = nullptr;
  DeviceBuffer workspace;
  std::string name;
  int device = 0;

  ~State() {
    if (handle != nullptr) cublas.destroy(handle);
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
};

CudaContext::CudaContext(int device) : state_(std::make_unique<State>()) {
  State& s = *state_;
  check_cuda(cudaSetDevice(device), "device");
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "device");
  s.name = properties.name;
  s.device = device;
  check_cuda(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking), "stream");
  s.cublas.check(s.cublas.create(&s.handle), "cuBLAS");
  s.cublas.check(s.cublas.set_stream(s.handle, s.stream), "cuBLAS");
  s.workspace = DeviceBuffer(kWorkspaceBytes);
  s.cublas.check(s.cublas.set_workspace(s.handle, s.workspace.as<std::byte>(), kWorkspaceBytes),
                 "cuBLAS");
  s.cublas.check(s.cublas.set_math_mode(s.handle, CUBLAS_PEDANTIC_MATH), "cuBLAS");
}

CudaContext::~CudaContext() = default;

void CudaContext::use_in_this_thread() const {
  check_cuda(cudaSetDevice(state_->device), "device");
}

CudaStream CudaContext::stream() const { return state_->stream; }

const std::string& CudaContext::name() const { return state_->name; }

std::size_t CudaContext::free_bytes() const {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "device memory");
  return free;
}

void CudaContext::synchronize() const {
  check_work(cudaStreamSynchronize(state_->stream), "the GPU's work");
}

void CudaContext::upload(void* device, const void* host, std::size_t bytes) const {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, state_->stream),
             "copy to the GPU");
}

void CudaContext::download(void* host, const void* device, std::size_t bytes) const {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, state_->stream),
             "copy from the GPU");
}

void CudaContext::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, state_->stream),
             "copy within the GPU");
}

void CudaContext::clear(void* device, std::size_t bytes) const {
  if (bytes == 0) return;
  check_cuda(cudaMemsetAsync(device, 0, bytes, state_->stream), "clear memory of the GPU");
}

void CudaContext::gemm(const MatrixProduct<float>& product) const {
  const auto& [a, b, c, accumulate] = product;
  const auto form = [](const Factor<float>& factor) {
    return factor.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  const float one = 1, held = accumulate ? 1.0F : 0.0F;
  // cuBLAS is column-major: its C^T = (A B)^T = B^T A^T is our row-major C.
  const Cublas& cublas = state_->cublas;
  cublas.check(cublas.gemm(state_->handle, form(b), form(a), as_int(product.n()),
                           as_int(product.m()), as_int(product.k()), &one, b.data, as_int(b.stride),
                           a.data, as_int(a.stride), &held, c.data, as_int(c.stride)),
               "gemm");
}

}  // namespace rk
