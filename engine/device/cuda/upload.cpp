#include "engine/device/cuda/upload.h"

#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/error.h"
#include "engine/device/pinned_buffer.h"

#include <cuda_runtime.h>

#include <array>
#include <cstring>

namespace rk {

struct DeviceUpload::State {
  struct Host {
    PinnedBuffer bytes;
    std::size_t used = 0;
    cudaEvent_t staged = nullptr;  // this buffer's bytes were copied to staging
  };

  cudaStream_t stream = nullptr;  // the context's
  cudaStream_t copies = nullptr;  // our own
  cudaEvent_t taken = nullptr;    // the staging place may be overwritten
  std::array<Host, 2> hosts;      // used in turn
  std::size_t turn = 0;           // index of the buffer staged last
  DeviceBuffer staging, data;

  ~State() {
    for (const Host& host : hosts) {
      if (host.staged != nullptr) cudaEventDestroy(host.staged);
    }
    if (taken != nullptr) cudaEventDestroy(taken);
    if (copies != nullptr) cudaStreamDestroy(copies);
  }
};

DeviceUpload::DeviceUpload(const CudaContext& cuda, std::size_t bytes)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.stream = cuda.stream();
  check_cuda(cudaStreamCreateWithFlags(&s.copies, cudaStreamNonBlocking), "upload");
  check_cuda(cudaEventCreateWithFlags(&s.taken, cudaEventDisableTiming), "upload");
  for (State::Host& host : s.hosts) {
    check_cuda(cudaEventCreateWithFlags(&host.staged, cudaEventDisableTiming), "upload");
    host.bytes = PinnedBuffer(bytes);
  }
  s.staging = DeviceBuffer(bytes);
  s.data = DeviceBuffer(bytes);
}
DeviceUpload::DeviceUpload() = default;
DeviceUpload::~DeviceUpload() = default;
DeviceUpload::DeviceUpload(DeviceUpload&&) noexcept = default;
DeviceUpload& DeviceUpload::operator=(DeviceUpload&&) noexcept = default;

// An event that was never recorded counts as complete.
void DeviceUpload::stage(std::span<const std::byte> bytes) {
  State& s = *state_;
  expect(bytes.size() <= s.data.bytes(), "[upload] expected at most {} bytes, got {}",
         s.data.bytes(), bytes.size());
  s.turn = 1 - s.turn;
  State::Host& host = s.hosts[s.turn];
  check_work(cudaEventSynchronize(host.staged), "upload");
  std::memcpy(host.bytes.as<std::byte>(), bytes.data(), bytes.size());
  host.used = bytes.size();
  check_cuda(cudaStreamWaitEvent(s.copies, s.taken), "upload");
  check_cuda(cudaMemcpyAsync(s.staging.as<std::byte>(), host.bytes.as<std::byte>(), bytes.size(),
                             cudaMemcpyHostToDevice, s.copies),
             "upload");
  check_cuda(cudaEventRecord(host.staged, s.copies), "upload");
}

void DeviceUpload::take() {
  State& s = *state_;
  const State::Host& host = s.hosts[s.turn];
  check_cuda(cudaStreamWaitEvent(s.stream, host.staged), "upload");
  check_cuda(cudaMemcpyAsync(s.data.as<std::byte>(), s.staging.as<std::byte>(), host.used,
                             cudaMemcpyDeviceToDevice, s.stream),
             "upload");
  check_cuda(cudaEventRecord(s.taken, s.stream), "upload");
}

void DeviceUpload::take_back() {
  State& s = *state_;
  const State::Host& before = s.hosts[1 - s.turn];
  check_cuda(cudaMemcpyAsync(s.data.as<std::byte>(), before.bytes.as<std::byte>(), before.used,
                             cudaMemcpyHostToDevice, s.stream),
             "upload");
  check_cuda(cudaEventRecord(before.staged, s.stream), "upload");
}

std::byte* DeviceUpload::data() const { return state_->data.as<std::byte>(); }

std::size_t DeviceUpload::reserved_bytes() const {
  return state_ == nullptr ? 0 : state_->staging.bytes() + state_->data.bytes();
}

}  // namespace rk
