// Host memory that the GPU copies from and to while the program continues: move-only, aligned to
// 256 bytes, uninitialised.
//
// It is page-locked. If the system has no page-locked memory, ordinary memory takes its place, with
// a note: a copy may then wait for earlier work on the stream, which a capture
// (engine/device/cuda/graph.h) forbids; but no captured work copies from or to the host.
#pragma once

#include <cstddef>
#include <memory>

namespace rk {

class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t bytes);

  template <class T> T* as() const { return reinterpret_cast<T*>(data_.get()); }
  std::size_t bytes() const { return bytes_; }
  bool page_locked() const { return data_.get_deleter().page_locked; }

 private:
  struct Free {
    Free() : page_locked(true) {}
    explicit Free(bool locked) : page_locked(locked) {}
    void operator()(std::byte* data) const;
    bool page_locked;
  };
  using Data = std::unique_ptr<std::byte, Free>;

  static std::byte* page_locked_memory(std::size_t bytes);  // null if none is available
  static std::byte* ordinary_memory(std::size_t bytes);

  Data data_;
  std::size_t bytes_ = 0;
};

}  // namespace rk
