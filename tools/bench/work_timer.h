// Times work on a context's device: by the host's clock, or on a GPU between two events on its
// stream.
#pragma once

#include "engine/device/context.h"
#include "engine/device/cuda/graph.h"
#include "engine/device/cuda/timer.h"
#include "tools/bench/timing.h"

#include <memory>

namespace rk {

class WorkTimer {
 public:
  explicit WorkTimer(const Context& context) {
    if (context.on_gpu()) gpu_ = std::make_unique<DeviceTimer>(context.cuda());
  }

  template <class F> double milliseconds(F&& work) {
    if (gpu_ == nullptr) return rk::milliseconds(work);
    gpu_->start();
    work();
    return gpu_->stop();
  }

 private:
  std::unique_ptr<DeviceTimer> gpu_;
};

// What a launch costs a GPU, for floors: milliseconds, about that of a replayed CUDA graph's node.
inline constexpr double kLaunchMs = 5e-3;

// The number of kernels and copies that `work` puts on a GPU's stream.
template <class F> int launches_of(const Context& context, F&& work) {
  return static_cast<int>(CudaGraph(context.cuda(), work).nodes());
}

}  // namespace rk
