// A point in a stream's work that the host can wait for while the GPU continues with later work on
// the stream.
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

  // Moves the mark behind all work so far. Must not be captured.
  void set();
  // Returns at once if the mark was never set. Throws DeviceFault if work before the mark failed.
  void wait() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rk
