// One value in the memory of a context's device, which the host writes and reads as well. On a GPU
// the host may be a piece of work ahead: what it sends for the second lies beside what it sent for
// the first, and so does what it fetches.
#pragma once

#include "engine/device/context.h"
#include "engine/device/cuda/buffer.h"

#include <array>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace rk {

template <class T> class DeviceValue {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  void plan(const Context& context) {
    device_ = context.allocate(sizeof(T));
    if (!context.on_gpu()) return;
    for (Host* side : {&sent_, &fetched_}) {
      for (PinnedBuffer& place : side->places) place = PinnedBuffer(sizeof(T));
    }
  }
  // For what the device computes.
  T* place() const { return device_.as<T>(); }

  // Before the work that is started next; may not be captured. The work that was sent for two
  // send() ago is waited for.
  template <std::same_as<T> Record, class Member>
  void send(const Context& context, Member Record::*member, const Member& value) {
    T* from = next(sent_);
    from->*member = value;
    if (apart()) context.upload(&(place()->*member), &(from->*member), sizeof(Member));
  }
  // Behind the work so far; may not be captured. Two at most are fetched and not taken.
  void fetch(const Context& context) {
    T* to = next(fetched_);
    if (apart()) context.download(to, place(), sizeof(T));
  }
  // Of the first fetch() that was not taken, once it is waited for. On the CPU the value as it is.
  const T& take() { return *at(fetched_, taken_++); }
  // fetch(), then take(); waits for all work so far.
  const T& read(const Context& context) {
    fetch(context);
    context.synchronize();
    return take();
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
  struct Host {
    std::array<PinnedBuffer, 2> places;  // on a GPU
    std::size_t used = 0;
  };

  bool apart() const { return sent_.places[0].bytes() > 0; }
  T* at(const Host& side, std::size_t number) const {
    return apart() ? side.places[number % side.places.size()].template as<T>() : place();
  }
  T* next(Host& side) const { return at(side, side.used++); }

  Memory device_;
  Host sent_, fetched_;
  std::size_t taken_ = 0;
};

}  // namespace rk
