// One value in the memory of a context's device that the host also reads and writes. On a GPU the
// host may run one piece of work ahead: values sent for, and fetched from, two consecutive pieces
// of work use separate host buffers.
#pragma once

#include "engine/device/context.h"
#include "engine/device/pinned_buffer.h"

#include <array>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace rk {

template <class T> class DeviceValue {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  void allocate(const Context& context) {
    device_ = context.allocate(sizeof(T));
    if (!context.on_gpu()) return;
    for (Host* side : {&sent_, &fetched_}) {
      for (PinnedBuffer& place : side->places) place = PinnedBuffer(sizeof(T));
    }
  }
  // Address for kernels.
  T* device_ptr() const { return device_.as<T>(); }

  // Changes one member before the next work is started; must not be captured. The caller must have
  // waited for the work that the send() before the last preceded, because its buffer is reused.
  template <std::same_as<T> Record, class Member>
  void send(const Context& context, Member Record::*member, const Member& value) {
    T* from = next(sent_);
    from->*member = value;
    if (apart()) context.upload(&(device_ptr()->*member), &(from->*member), sizeof(Member));
  }
  // Fetches the value as the work so far leaves it; must not be captured. At most two fetches may
  // be outstanding, that is not yet taken.
  void fetch(const Context& context) {
    T* to = next(fetched_);
    if (apart()) context.download(to, device_ptr(), sizeof(T));
  }
  // Returns the value of the oldest outstanding fetch(), which the caller must have waited for. On
  // the CPU, returns the current value.
  const T& take() { return *at(fetched_, taken_++); }

  // Blocking copies, for set-up and saving.
  void set(const T& value) { device_.upload(&value, sizeof(T)); }
  T get() const {
    T value;
    device_.download(&value, sizeof(T));
    return value;
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(device_.bytes()); }

 private:
  struct Host {
    std::array<PinnedBuffer, 2> places;  // on a GPU
    std::size_t used = 0;
  };

  bool apart() const { return sent_.places[0].bytes() > 0; }
  T* at(const Host& side, std::size_t number) const {
    return apart() ? side.places[number % side.places.size()].template as<T>() : device_ptr();
  }
  T* next(Host& side) const { return at(side, side.used++); }

  Memory device_;
  Host sent_, fetched_;
  std::size_t taken_ = 0;
};

}  // namespace rk
