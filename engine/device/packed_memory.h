// The small per-batch data that the host passes to a device: pieces packed on the host and, for a
// GPU, copied in one go, so that the host may pack a batch while the GPU still works on the one
// before. On the CPU the pieces are written where they are read.
#pragma once

#include "engine/base/integers.h"
#include "engine/device/buffer.h"
#include "engine/device/context.h"
#include "engine/device/mark.h"
#include "engine/device/pinned_buffer.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rk {

class PackedMemory {
 public:
  // Adds a piece; call before allocate(). Returns the piece's offset.
  std::size_t add(std::size_t bytes) {
    const std::size_t offset = bytes_;
    bytes_ += round_up(bytes, Buffer::kAlignment);
    return offset;
  }
  // Allocates the memory, filled with zeros.
  void allocate(const Context& context);

  // Call before writing the pieces. Waits until the batch before the last has been copied to the
  // GPU.
  void begin();
  template <class T> T* host(std::size_t offset) const {
    return reinterpret_cast<T*>(host_data() + offset);
  }
  // Call after writing the pieces.
  void send(const Context& context);
  template <class T> T* device(std::size_t offset) const {
    return reinterpret_cast<T*>(device_.data() + offset);
  }

  std::int64_t bytes() const { return static_cast<std::int64_t>(device_.bytes()); }

 private:
  struct Sending {
    PinnedBuffer host;
    std::optional<Mark> sent;
  };

  std::byte* host_data() const {
    const PinnedBuffer& host = sendings_[turn_].host;
    return host.bytes() > 0 ? host.as<std::byte>() : device_.data();
  }

  std::size_t bytes_ = 0;
  std::array<Sending, 2> sendings_;  // on a GPU, in turn
  std::size_t turn_ = 0;
  Memory device_;
};

}  // namespace rk
