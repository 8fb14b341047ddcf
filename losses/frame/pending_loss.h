// What a loss computes for a batch, in the memory of its device, and the number of valid queries,
// which the host counts. On a GPU the results of two batches may be on their way to the host
// (engine/device/device_value.h).
#pragma once

#include "engine/device/device_value.h"

#include <array>
#include <cstdint>

namespace rk {

template <class T> class PendingLoss {
 public:
  void allocate(const Context& context) { value_.allocate(context); }
  T* device_ptr() const { return value_.device_ptr(); }

  void fetch(const Context& context, std::int64_t valid_queries) {
    valid_queries_[fetched_++ % valid_queries_.size()] = valid_queries;
    value_.fetch(context);
  }
  struct Taken {
    const T& value;
    std::int64_t valid_queries;
  };
  Taken take() { return {value_.take(), valid_queries_[taken_++ % valid_queries_.size()]}; }

  std::int64_t bytes() const { return value_.bytes(); }

 private:
  DeviceValue<T> value_;
  std::array<std::int64_t, 2> valid_queries_{};
  std::size_t fetched_ = 0, taken_ = 0;
};

}  // namespace rk
