// A point in a context's work that the host can wait for (engine/device/cuda/mark.h). On the CPU,
// work is done when its call returns, so there is nothing to wait for.
#pragma once

#include "engine/device/context.h"
#include "engine/device/cuda/mark.h"

#include <memory>

namespace rk {

class Mark {
 public:
  explicit Mark(const Context& context)
      : gpu_(context.on_gpu() ? std::make_unique<DeviceMark>(context.cuda()) : nullptr) {}

  void set() {
    if (gpu_ != nullptr) gpu_->set();
  }
  void wait() const {
    if (gpu_ != nullptr) gpu_->wait();
  }

 private:
  std::unique_ptr<DeviceMark> gpu_;
};

}  // namespace rk
