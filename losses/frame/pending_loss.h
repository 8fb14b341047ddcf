// What a loss computes for a batch, in the memory of its device, and the number of valid queries,
// which the host counts. The results of two batches may be fetched and not yet taken.
#pragma once

#include "engine/device/device_value.h"
#include "engine/device/in_turn.h"

#include <cstdint>

namespace rk {

template <class T> class PendingLoss {
 public:
  void allocate(const Context& context) { value_.allocate(context); }
  T* device_ptr() const { return value_.device_ptr(); }

  void fetch(const Context& context, std::int64_t valid_queries) {
    valid_queries_.next() = valid_queries;
    value_.fetch(context);
  }
  struct Taken {
    const T& value;
    std::int64_t valid_queries;
  };
  Taken take() { return {value_.take(), valid_queries_.oldest()}; }

  std::int64_t bytes() const { return value_.bytes(); }

 private:
  DeviceValue<T> value_;
  InTurn<std::int64_t> valid_queries_;
};

}  // namespace rk
