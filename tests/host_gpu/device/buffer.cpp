// In place of engine/device/cuda/buffer.cpp.
#include "engine/device/cuda/buffer.h"
#include "engine/device/pinned_buffer.h"

#include "engine/base/error.h"
#include "engine/device/cuda/error.h"
#include "tests/host_gpu/device/memory.h"
#include "tests/host_gpu/device/stream.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace rk {
namespace {

struct Range {
  std::size_t bytes = 0;
  host_gpu::Kind kind = host_gpu::Kind::kDevice;
};

struct Ranges {
  std::mutex mutex;
  std::map<const std::byte*, Range> by_start;
  std::size_t available = std::size_t{1} << 46;
};

Ranges& ranges() {
  static Ranges held;
  return held;
}

std::byte* allocate(host_gpu::Kind kind, std::size_t bytes) {
  host_gpu::refuse_in_capture("allocation");
  const std::size_t free = host_gpu::free_bytes();
  if (kind == host_gpu::Kind::kDevice && bytes + host_gpu::kOfLibraries > free) {
    fail<DeviceError>("the GPU is out of memory: {} bytes asked for, {} free", bytes, free);
  }
  constexpr std::size_t kAlignment = 256;
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole));
  if (data == nullptr) fail<DeviceError>("the GPU is out of memory: {} bytes asked for", bytes);
  host_gpu::fill_with_nan(data, whole);
  Ranges& held = ranges();
  const std::lock_guard lock(held.mutex);
  held.by_start[data] = {bytes, kind};
  if (kind == host_gpu::Kind::kDevice) held.available -= bytes;
  return data;
}

void release(std::byte* data) {
  Ranges& held = ranges();
  const std::lock_guard lock(held.mutex);
  const auto found = held.by_start.find(data);
  host_gpu::fill_with_nan(data, found->second.bytes);
  if (found->second.kind == host_gpu::Kind::kDevice) held.available += found->second.bytes;
  held.by_start.erase(found);
  std::free(data);
}

}  // namespace

namespace host_gpu {

std::size_t free_bytes() {
  const std::lock_guard lock(ranges().mutex);
  return ranges().available;
}
void set_free_bytes(std::size_t bytes) {
  const std::lock_guard lock(ranges().mutex);
  ranges().available = bytes;
}

static bool pages_can_be_locked = true;
void set_page_locking(bool possible) { pages_can_be_locked = possible; }

void fill_with_nan(void* data, std::size_t bytes) { std::memset(data, 0xFF, bytes); }

void expect_kind(Kind kind, const void* data, std::size_t bytes, const char* what) {
  const auto* first = static_cast<const std::byte*>(data);
  const char* wanted = kind == Kind::kDevice ? "device memory" : "host memory of a PinnedBuffer";
  Ranges& held = ranges();
  const std::lock_guard lock(held.mutex);
  auto after = held.by_start.upper_bound(first);
  if (after == held.by_start.begin()) {
    fail<DeviceError>("[{}] expected {}, got a pointer to other memory", what, wanted);
  }
  const auto& [start, range] = *std::prev(after);
  const auto offset = static_cast<std::size_t>(first - start);
  if (offset >= range.bytes) {
    fail<DeviceError>("[{}] expected {}, got a pointer to other memory", what, wanted);
  }
  if (range.kind != kind) {
    fail<DeviceError>("[{}] expected {}, got the other of the two", what, wanted);
  }
  if (bytes > range.bytes - offset) {
    fail<DeviceError>("[{}] expected at most {} bytes, which are left there, got {}", what,
                      range.bytes - offset, bytes);
  }
}

}  // namespace host_gpu

void check_cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  fail<DeviceError>("[{}] (error {})", what, static_cast<int>(error));
}

void DeviceBuffer::Free::operator()(std::byte* data) const { release(data); }
void PinnedBuffer::Free::operator()(std::byte* data) const { release(data); }

std::byte* PinnedBuffer::page_locked_memory(std::size_t bytes) {
  return host_gpu::pages_can_be_locked ? allocate(host_gpu::Kind::kHost, bytes) : nullptr;
}

// Copies to and from ordinary memory arrive late, like those of page-locked memory: CUDA allows
// that for both.
std::byte* PinnedBuffer::ordinary_memory(std::size_t bytes) {
  return allocate(host_gpu::Kind::kHost, bytes);
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes > 0) data_.reset(allocate(host_gpu::Kind::kDevice, bytes));
}

void DeviceBuffer::upload(const void* from, std::size_t bytes) {
  expect(bytes <= bytes_, "[device memory] expected a copy of at most {} bytes, got {}", bytes_,
         bytes);
  host_gpu::refuse_in_capture("copy to the GPU");
  if (bytes > 0) std::memcpy(data_.get(), from, bytes);
}

void DeviceBuffer::download(void* to, std::size_t bytes) const {
  expect(bytes <= bytes_, "[device memory] expected a copy of at most {} bytes, got {}", bytes_,
         bytes);
  host_gpu::refuse_in_capture("copy from the GPU");
  if (bytes > 0) std::memcpy(to, data_.get(), bytes);
}

}  // namespace rk
