// One value in the memory of a context's device, which the host writes and reads as well.
#pragma once

#include "engine/device/context.h"
#include "engine/device/cuda/buffer.h"

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace rk {

template <class T> class DeviceValue {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  void plan(const Context& context) {
    device_ = context.allocate(sizeof(T));
    if (context.on_gpu()) host_ = PinnedBuffer(sizeof(T));
  }
  // For what the device computes.
  T* place() const { return device_.as<T>(); }

  // Before the work that is started next; may not be captured. Between a send() and the next the
  // device's work is waited for.
  template <std::same_as<T> Record, class Member>
  void send(const Context& context, Member Record::*member, const Member& value) {
    on_host()->*member = value;
    if (apart()) context.upload(&(place()->*member), &(host_.as<T>()->*member), sizeof(Member));
  }
  // Behind the work so far; there for fetched() once it is waited for. May not be captured.
  void fetch(const Context& context) const {
    if (apart()) context.download(host_.as<T>(), place(), sizeof(T));
  }
  const T& fetched() const { return *on_host(); }
  // Both; waits for all work so far.
  const T& read(const Context& context) const {
    fetch(context);
    context.synchronize();
    return fetched();
  }

  // Copies that wait, for set-up and saving.
  void set(const T& value) { device_.upload(&value, sizeof(T)); }
  T get() const {
    T value;
    device_.download(&value, sizeof(T));
    return value;
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(device_.bytes()); }

 private:
  bool apart() const { return host_.bytes() > 0; }
  T* on_host() const { return apart() ? host_.as<T>() : place(); }

  Memory device_;
  PinnedBuffer host_;  // on a GPU
};

}  // namespace rk
