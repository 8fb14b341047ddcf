// In place of engine/device/cuda/upload.cpp.
#include "engine/device/cuda/upload.h"

#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "tests/host_gpu/device/stream.h"

#include <cstring>
#include <utility>
#include <vector>

namespace rk {

struct DeviceUpload::State {
  CudaStream stream = nullptr;
  std::vector<std::byte> staged, before;
  DeviceBuffer data;
};

DeviceUpload::DeviceUpload(const CudaContext& cuda, std::size_t bytes)
    : state_(std::make_unique<State>()) {
  state_->stream = cuda.stream();
  state_->data = DeviceBuffer(bytes);
}
DeviceUpload::DeviceUpload() = default;
DeviceUpload::~DeviceUpload() = default;
DeviceUpload::DeviceUpload(DeviceUpload&&) noexcept = default;
DeviceUpload& DeviceUpload::operator=(DeviceUpload&&) noexcept = default;

void DeviceUpload::stage(std::span<const std::byte> bytes) {
  host_gpu::refuse_in_capture("upload");
  expect(bytes.size() <= state_->data.bytes(), "[upload] expected at most {} bytes, got {}",
         state_->data.bytes(), bytes.size());
  std::swap(state_->before, state_->staged);
  state_->staged.assign(bytes.begin(), bytes.end());
}

void DeviceUpload::take() {
  host_gpu::put(state_->stream, [to = data(), staged = state_->staged] {
    std::memcpy(to, staged.data(), staged.size());
  });
}

void DeviceUpload::take_back() {
  host_gpu::put(state_->stream, [to = data(), before = state_->before] {
    std::memcpy(to, before.data(), before.size());
  });
}

std::byte* DeviceUpload::data() const { return state_->data.as<std::byte>(); }

std::size_t DeviceUpload::reserved_bytes() const {
  return state_ == nullptr ? 0 : state_->data.bytes();
}

}  // namespace rk
