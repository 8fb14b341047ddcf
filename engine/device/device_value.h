// One value in the memory of a context's device that the host also reads and writes. The host may
// run one piece of work ahead: values sent for (on a GPU), and fetched from, two consecutive pieces
// of work have separate places.
#pragma once

#include "engine/device/context.h"
#include "engine/device/in_turn.h"
#include "engine/device/pinned_buffer.h"

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace rk {

template <class T> class DeviceValue {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  void allocate(const Context& context) {
    device_ = context.allocate(sizeof(T));
    apart_ = context.on_gpu();
    if (!apart_) return;
    for (InTurn<PinnedBuffer>* side : {&sent_, &fetched_}) {
      for (PinnedBuffer& place : side->both()) place = PinnedBuffer(sizeof(T));
    }
  }
  // Address for kernels.
  T* device_ptr() const { return device_.as<T>(); }

  // Changes one member before the next work is started; must not be captured. The caller must have
  // waited for the work that the send() before the last preceded, because its buffer is reused.
  template <std::same_as<T> Record, class Member>
  void send(const Context& context, Member Record::*member, const Member& value) {
    T* from = apart_ ? sent_.next().template as<T>() : device_ptr();
    from->*member = value;
    if (apart_) context.upload(&(device_ptr()->*member), &(from->*member), sizeof(Member));
  }
  // Fetches the value as the work so far leaves it; must not be captured. At most two fetches may
  // be outstanding, that is not yet taken.
  void fetch(const Context& context) {
    if (apart_) {
      context.download(fetched_.next().template as<T>(), device_ptr(), sizeof(T));
    } else {
      kept_.next() = *device_ptr();
    }
  }
  // Returns the value of the oldest outstanding fetch(), which the caller must have waited for.
  const T& take() { return apart_ ? *fetched_.oldest().template as<T>() : kept_.oldest(); }

  // Blocking copies, for set-up and saving.
  void set(const T& value) { device_.upload(&value, sizeof(T)); }
  T get() const {
    T value;
    device_.download(&value, sizeof(T));
    return value;
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(device_.bytes()); }

 private:
  Memory device_;
  bool apart_ = false;                   // on a GPU: the host has places of its own
  InTurn<PinnedBuffer> sent_, fetched_;  // on a GPU
  InTurn<T> kept_;                       // elsewhere, what was fetched
};

}  // namespace rk
