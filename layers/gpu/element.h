// From a precision at run time to the type of its images in C++.
#pragma once

#include "engine/device/precision.h"
#include "kernels/half_element.h"

#include <cstddef>

namespace rk::gpu {

// Pieces of a node's memory start where any load may.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// Hands out pieces of a claimed range, or, without memory, adds up what is to be claimed.
class Pieces {
 public:
  explicit Pieces(void* memory = nullptr) : memory_(static_cast<std::byte*>(memory)) {}
  template <class T> T* take(std::int64_t count) {
    auto* piece = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + used_);
    used_ += aligned(static_cast<std::size_t>(count) * sizeof(T));
    return piece;
  }
  std::size_t used() const { return used_; }
  void* rest() const { return memory_ + used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

}  // namespace rk::gpu
