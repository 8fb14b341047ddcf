// Measures a stream's work by the GPU's own clock.
#pragma once

#include "engine/device/cuda/context.h"

#include <memory>

namespace rk {

class DeviceTimer {
 public:
  explicit DeviceTimer(const CudaContext& cuda);
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

  // Measures the work put on the stream between start() and stop(); stop() waits for that work.
  void start();
  double stop();  // milliseconds

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rk
