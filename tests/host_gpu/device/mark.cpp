// In place of engine/device/cuda/mark.cpp.
#include "engine/device/cuda/mark.h"

#include "tests/host_gpu/device/stream.h"

namespace rk {

struct DeviceMark::State {
  host_gpu::Downloads* downloads = nullptr;
  std::size_t before = 0;  // the mark
};

DeviceMark::DeviceMark(const CudaContext& cuda) : state_(std::make_unique<State>()) {
  state_->downloads = &host_gpu::downloads_of(cuda.stream());
}

DeviceMark::~DeviceMark() = default;

void DeviceMark::set() {
  host_gpu::refuse_in_capture("mark");
  state_->before = state_->downloads->count();
}

void DeviceMark::wait() const {
  host_gpu::refuse_in_capture("the GPU's work");
  state_->downloads->deliver(state_->before);
}

}  // namespace rk
