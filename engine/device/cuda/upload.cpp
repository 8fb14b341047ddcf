#include "engine/device/cuda/upload.h"

#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/error.h"

#include <cuda_runtime.h>

#include <cstring>

namespace rk {

struct DeviceUpload::State {
  cudaStream_t stream = nullptr;  // the context's
  cudaStream_t copies = nullptr;  // our own
  cudaEvent_t staged = nullptr;   // the bytes have left the page-locked memory
  cudaEvent_t taken = nullptr;    // the staging place may be written again
  std::size_t bytes = 0, staged_bytes = 0;
  PinnedBuffer host;
  DeviceBuffer staging, data;

  ~State() {
    if (staged != nullptr) cudaEventDestroy(staged);
    if (taken != nullptr) cudaEventDestroy(taken);
    if (copies != nullptr) cudaStreamDestroy(copies);
  }
};

DeviceUpload::DeviceUpload(const CudaContext& cuda, std::size_t bytes)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.stream = cuda.stream();
  check_cuda(cudaStreamCreateWithFlags(&s.copies, cudaStreamNonBlocking), "upload");
  check_cuda(cudaEventCreateWithFlags(&s.staged, cudaEventDisableTiming), "upload");
  check_cuda(cudaEventCreateWithFlags(&s.taken, cudaEventDisableTiming), "upload");
  s.bytes = bytes;
  s.host = PinnedBuffer(bytes);
  s.staging = DeviceBuffer(bytes);
  s.data = DeviceBuffer(bytes);
}
DeviceUpload::DeviceUpload() = default;
DeviceUpload::~DeviceUpload() = default;
DeviceUpload::DeviceUpload(DeviceUpload&&) noexcept = default;
DeviceUpload& DeviceUpload::operator=(DeviceUpload&&) noexcept = default;

// An event that was never recorded counts as done.
void DeviceUpload::stage(std::span<const std::byte> bytes) {
  State& s = *state_;
  expect(bytes.size() <= s.bytes, "[upload] expected at most {} bytes, got {}", s.bytes,
         bytes.size());
  check_cuda(cudaEventSynchronize(s.staged), "upload");
  std::memcpy(s.host.as<std::byte>(), bytes.data(), bytes.size());
  s.staged_bytes = bytes.size();
  check_cuda(cudaStreamWaitEvent(s.copies, s.taken), "upload");
  check_cuda(cudaMemcpyAsync(s.staging.as<std::byte>(), s.host.as<std::byte>(), bytes.size(),
                             cudaMemcpyHostToDevice, s.copies),
             "upload");
  check_cuda(cudaEventRecord(s.staged, s.copies), "upload");
}

void DeviceUpload::take() {
  State& s = *state_;
  check_cuda(cudaStreamWaitEvent(s.stream, s.staged), "upload");
  check_cuda(cudaMemcpyAsync(s.data.as<std::byte>(), s.staging.as<std::byte>(), s.staged_bytes,
                             cudaMemcpyDeviceToDevice, s.stream),
             "upload");
  check_cuda(cudaEventRecord(s.taken, s.stream), "upload");
}

std::byte* DeviceUpload::data() const { return state_->data.as<std::byte>(); }

std::size_t DeviceUpload::reserved_bytes() const {
  return state_ == nullptr ? 0 : state_->staging.bytes() + state_->data.bytes();
}

}  // namespace rk
