// What the host tells a device of a batch: pieces packed on the host and, for a GPU, copied in one
// go. On the CPU they are written where they are read.
#pragma once

#include "engine/device/context.h"
#include "engine/device/cuda/buffer.h"

#include <cstddef>

namespace rk {

class PackedMemory {
 public:
  // One more piece, before plan(). Returns where it begins.
  std::size_t add(std::size_t bytes) {
    const std::size_t offset = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  // Filled with zeros.
  void plan(const Context& context);

  // Before the pieces are written. Waits until the GPU has the last batch's.
  void begin(const Context& context);
  template <class T> T* host(std::size_t offset) const {
    return reinterpret_cast<T*>(host_data() + offset);
  }
  // After they are.
  void send(const Context& context);
  template <class T> T* device(std::size_t offset) const {
    return reinterpret_cast<T*>(device_.data() + offset);
  }

  std::int64_t bytes() const { return static_cast<std::int64_t>(device_.bytes()); }

 private:
  std::byte* host_data() const {
    return host_.bytes() > 0 ? host_.as<std::byte>() : device_.data();
  }

  std::size_t bytes_ = 0;
  bool sent_ = false;
  PinnedBuffer host_;  // on a GPU
  Memory device_;
};

}  // namespace rk
