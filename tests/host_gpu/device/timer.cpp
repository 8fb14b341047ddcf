// In place of engine/device/cuda/timer.cpp.
#include "engine/device/cuda/timer.h"

#include <chrono>

namespace rk {

struct DeviceTimer::State {
  const CudaContext* cuda;
  std::chrono::steady_clock::time_point begin;
};

DeviceTimer::DeviceTimer(const CudaContext& cuda) : state_(std::make_unique<State>()) {
  state_->cuda = &cuda;
}

DeviceTimer::~DeviceTimer() = default;

void DeviceTimer::start() { state_->begin = std::chrono::steady_clock::now(); }

double DeviceTimer::stop() {
  state_->cuda->synchronize();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - state_->begin)
      .count();
}

}  // namespace rk
