// Memory of a context's device: the host's (Buffer) or a GPU's (DeviceBuffer). Uninitialised,
// move-only, freed with its owner. Made by Context::allocate.
#pragma once

#include "engine/device/buffer.h"
#include "engine/device/cuda/buffer.h"

#include <cstddef>
#include <cstring>
#include <utility>

namespace rk {

class Memory {
 public:
  Memory() = default;
  explicit Memory(Buffer host)
      : host_(std::move(host)), data_(host_.as<std::byte>()), bytes_(host_.bytes()) {}
  explicit Memory(DeviceBuffer gpu)
      : gpu_(std::move(gpu)), data_(gpu_.as<std::byte>()), bytes_(gpu_.bytes()) {}
  Memory(Memory&&) = default;
  Memory& operator=(Memory&&) = default;

  std::byte* data() const { return data_; }
  template <class T> T* as() const { return reinterpret_cast<T*>(data_); }
  std::size_t bytes() const { return bytes_; }

  // Blocking copies of the first `bytes` from and to the host, for set-up, saving and tests.
  void upload(const void* from, std::size_t bytes) {
    if (bytes == 0) return;  // an empty range may have a null address
    if (on_gpu()) return gpu_.upload(from, bytes);
    std::memcpy(data_, from, bytes);
  }
  void download(void* to, std::size_t bytes) const {
    if (bytes == 0) return;
    if (on_gpu()) return gpu_.download(to, bytes);
    std::memcpy(to, data_, bytes);
  }

 private:
  bool on_gpu() const { return gpu_.bytes() > 0; }

  Buffer host_;
  DeviceBuffer gpu_;  // one of them is empty
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rk
