#include "tests/host_gpu/device/stream.h"

#include "engine/base/error.h"
#include "tests/host_gpu/device/memory.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <set>

namespace rk::host_gpu {
namespace {

struct Capture {
  CudaStream stream = nullptr;
  Work work;
};

thread_local Capture* current = nullptr;
std::atomic<bool> captures_refused = false;

}  // namespace

Work* capturing(CudaStream stream) {
  if (current == nullptr) return nullptr;
  if (stream != current->stream) fail<DeviceError>("[capture] work on a stream that does not");
  return &current->work;
}

void refuse_captures(bool refuse) { captures_refused = refuse; }

Work capture(CudaStream stream, const std::function<void()>& work) {
  refuse_in_capture("capture");
  if (captures_refused) fail<DeviceError>("[capture] operation not permitted (error 900)");
  Capture held{stream, {}};
  current = &held;
  try {
    work();
  } catch (...) {
    current = nullptr;
    throw;
  }
  current = nullptr;
  return std::move(held.work);
}

void Downloads::add(void* to, const void* from, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(from);
  waiting_.push_back({to, {first, first + bytes}});
  fill_with_nan(to, bytes);
}

void Downloads::deliver(std::size_t count) {
  for (; delivered_ < count; ++delivered_, waiting_.pop_front()) {
    const Copy& copy = waiting_.front();
    std::memcpy(copy.to, copy.bytes.data(), copy.bytes.size());
  }
}

// A context's stream is its downloads' address.
Downloads& downloads_of(CudaStream stream) { return *reinterpret_cast<Downloads*>(stream); }

void refuse_in_capture(const char* what) {
  if (current != nullptr) fail<DeviceError>("[{}] not permitted while a stream is captured", what);
}

void load(const std::string& kernel) {
  static std::mutex mutex;
  static std::set<std::string> loaded;
  const std::lock_guard lock(mutex);
  if (current == nullptr) {
    loaded.insert(kernel);
  } else if (!loaded.contains(kernel)) {
    fail<DeviceError>("[capture] {} runs for the first time while a stream is captured", kernel);
  }
}

}  // namespace rk::host_gpu
