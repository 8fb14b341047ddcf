// Owned host memory: move-only, aligned to 64 bytes (one cache line, one AVX-512 register),
// uninitialised. Large buffers ask the kernel for huge pages, which measurably speeds up passes
// over whole arrays. Throws DeviceError with the size if memory cannot be allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace rk {

class Buffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  Buffer() = default;
  explicit Buffer(std::size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <class T> T* as() const { return static_cast<T*>(data_); }
  template <class T> static Buffer of(std::int64_t elements) {
    return Buffer(static_cast<std::size_t>(elements) * sizeof(T));
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rk
