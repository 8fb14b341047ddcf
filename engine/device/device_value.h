// One value in the memory of a context's device that the host also reads and writes. The host may
// run one piece of work ahead: values sent for (on a GPU), and fetched from, two consecutive pieces
// of work have separate places.
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
    T* from =
        apart() ? sent_.places[sent_.used++ % sent_.places.size()].template as<T>() : device_ptr();
    from->*member = value;
    if (apart()) context.upload(&(device_ptr()->*member), &(from->*member), sizeof(Member));
  }
  // Fetches the value as the work so far leaves it; must not be captured. At most two fetches may
  // be outstanding, that is not yet taken.
  void fetch(const Context& context) {
    const std::size_t place = fetched_.used++ % kept_.size();
    if (apart()) {
      context.download(fetched_.places[place].template as<T>(), device_ptr(), sizeof(T));
    } else {
      kept_[place] = *device_ptr();
    }
  }
  // Returns the value of the oldest outstanding fetch(), which the caller must have waited for.
  const T& take() {
    const std::size_t place = taken_++ % kept_.size();
    return apart() ? *fetched_.places[place].template as<T>() : kept_[place];
  }

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

  Memory device_;
  Host sent_, fetched_;
  std::array<T, 2> kept_{};  // on the CPU: what was fetched
  std::size_t taken_ = 0;
};

}  // namespace rk
