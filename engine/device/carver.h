// Cuts consecutive pieces from one range of memory, each aligned. Without memory, it only adds up
// the bytes that the range needs. A node thus lists its sizes once, and takes the same pieces when
// it requests memory and when it gets it (Node::carve in engine/tape/node.h).
#pragma once

#include "engine/base/integers.h"

#include <cstddef>
#include <cstdint>

namespace rk {

class Carver {
 public:
  // 256 bytes from the start, which is itself aligned for any load of its device.
  static constexpr std::size_t kAlignment = 256;

  explicit Carver(void* memory = nullptr) : memory_(static_cast<std::byte*>(memory)) {}

  // Returns null without memory.
  template <class T> T* take(std::int64_t count) {
    auto* piece = static_cast<T*>(rest());
    used_ += round_up(static_cast<std::size_t>(count) * sizeof(T), kAlignment);
    return piece;
  }
  std::size_t used() const { return used_; }
  void* rest() const { return memory_ == nullptr ? nullptr : memory_ + used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

}  // namespace rk
