#include "tests/host_gpu/cuda/memory.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <new>

#include <malloc.h>

namespace rk::host_gpu {
namespace {

struct Range {
  std::size_t bytes = 0;
  Kind kind = Kind::kDevice;
};

struct Ranges {
  // Every graph takes large vectors and frees them: to return their pages to the system each time
  // took a fifth of the emulation's time.
  Ranges() {
    constexpr int kNever = std::numeric_limits<int>::max();
    mallopt(M_MMAP_THRESHOLD, kNever);
    mallopt(M_TRIM_THRESHOLD, kNever);
  }

  std::mutex mutex;
  std::map<const std::byte*, Range> by_start;
  std::size_t available = kTotal;
  bool pages_can_be_locked = true;
};

Ranges& ranges() {
  static Ranges held;
  return held;
}

}  // namespace

void* allocate(Kind kind, std::size_t bytes) {
  Ranges& held = ranges();
  const std::lock_guard lock(held.mutex);
  if (kind == Kind::kHost && !held.pages_can_be_locked) return nullptr;
  if (kind == Kind::kDevice && bytes + kOfLibraries > held.available) return nullptr;
  constexpr std::size_t kAlignment = 256;
  const std::size_t whole = round_up(bytes, kAlignment);
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole));
  if (data == nullptr) throw std::bad_alloc();
  fill_with_nan(data, whole);
  held.by_start[data] = {bytes, kind};
  if (kind == Kind::kDevice) held.available -= bytes;
  return data;
}

void release(void* data) {
  Ranges& held = ranges();
  const std::lock_guard lock(held.mutex);
  const auto found = held.by_start.find(static_cast<const std::byte*>(data));
  expect(found != held.by_start.end(), "[free] expected the start of a buffer");
  fill_with_nan(data, found->second.bytes);
  if (found->second.kind == Kind::kDevice) held.available += found->second.bytes;
  held.by_start.erase(found);
  std::free(data);
}

std::size_t free_bytes() {
  const std::lock_guard lock(ranges().mutex);
  return ranges().available;
}
void set_free_bytes(std::size_t bytes) {
  const std::lock_guard lock(ranges().mutex);
  ranges().available = bytes;
}

void set_page_locking(bool possible) {
  const std::lock_guard lock(ranges().mutex);
  ranges().pages_can_be_locked = possible;
}

void fill_with_nan(void* data, std::size_t bytes) {
  if (bytes > 0) std::memset(data, 0xFF, bytes);  // of nothing, `data` may be null
}

void expect_kind(Kind kind, const void* data, std::size_t bytes, const char* what) {
  const auto* first = static_cast<const std::byte*>(data);
  const char* wanted = kind == Kind::kDevice ? "device memory" : "host memory of a PinnedBuffer";
  Ranges& held = ranges();
  const std::lock_guard lock(held.mutex);
  const auto after = held.by_start.upper_bound(first);
  const auto found = after == held.by_start.begin() ? held.by_start.end() : std::prev(after);
  if (found == held.by_start.end() ||
      static_cast<std::size_t>(first - found->first) >= found->second.bytes) {
    if (kind == Kind::kHost && !held.pages_can_be_locked) return;
    fail<DeviceError>("[{}] expected {}, got a pointer to other memory", what, wanted);
  }
  const Range& range = found->second;
  const std::size_t left = range.bytes - static_cast<std::size_t>(first - found->first);
  if (range.kind != kind) {
    fail<DeviceError>("[{}] expected {}, got the other of the two", what, wanted);
  }
  if (bytes > left) {
    fail<DeviceError>("[{}] expected at most {} bytes, which are left there, got {}", what, left,
                      bytes);
  }
}

}  // namespace rk::host_gpu
