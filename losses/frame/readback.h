// One value that a loss writes in the memory of its device, and reads there when it is asked for.
#pragma once

#include "engine/device/context.h"
#include "engine/device/cuda/buffer.h"

#include <type_traits>

namespace rk {

template <class T> class Readback {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  void plan(const Context& context) {
    device_ = context.allocate(sizeof(T));
    if (context.on_gpu()) host_ = PinnedBuffer(sizeof(T));
  }
  T* place() const { return device_.as<T>(); }
  // On a GPU waits for all of its work so far.
  const T& read(const Context& context) const {
    if (!context.on_gpu()) return *place();
    context.download(host_.as<T>(), place(), sizeof(T));
    context.synchronize();
    return *host_.as<T>();
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(device_.bytes()); }

 private:
  Memory device_;
  PinnedBuffer host_;
};

}  // namespace rk
