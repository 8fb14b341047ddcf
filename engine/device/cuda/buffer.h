// Memory of the current GPU: move-only, aligned to 256 bytes, uninitialised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

namespace rk {

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // Throws DeviceError, with the bytes requested and the bytes free, if the GPU has too few.
  explicit DeviceBuffer(std::size_t bytes);
  template <class T> static DeviceBuffer of(std::int64_t count) {
    return DeviceBuffer(static_cast<std::size_t>(count) * sizeof(T));
  }
  // `values`: a vector or a span.
  template <class Values> static DeviceBuffer copy_of(const Values& values) {
    const std::size_t bytes = values.size() * sizeof(*values.data());
    DeviceBuffer buffer(bytes);
    buffer.upload(values.data(), bytes);
    return buffer;
  }

  template <class T> T* as() const {
    static_assert(std::is_trivially_copyable_v<T>);
    return reinterpret_cast<T*>(data_.get());
  }
  std::size_t bytes() const { return bytes_; }

  // Blocking copies of the first `bytes`: they wait for all earlier work of the GPU and are done
  // when they return. For set-up and tests; a training step uses none.
  void upload(const void* from, std::size_t bytes);
  void download(void* to, std::size_t bytes) const;
  template <class T> std::vector<T> values() const {
    std::vector<T> out(bytes_ / sizeof(T));
    download(out.data(), out.size() * sizeof(T));
    return out;
  }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

}  // namespace rk
