// A place in the order of a stream's work that the host can wait for, while the GPU goes on with
// what was put on the stream behind it.
#pragma once

#include "engine/device/cuda/context.h"

#include <memory>

namespace rk {

class DeviceMark {
 public:
  explicit DeviceMark(const CudaContext& cuda);
  ~DeviceMark();
  DeviceMark(const DeviceMark&) = delete;
  DeviceMark& operator=(const DeviceMark&) = delete;

  // Behind all work so far, in place of where it was set before. Never within a capture.
  void set();
  // Not at all where it was never set. DeviceError for what went wrong in the work before it.
  void wait() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rk
