#include "engine/device/cuda/mark.h"

#include "engine/device/cuda/error.h"

namespace rk {

struct DeviceMark::State {
  CudaStream stream = nullptr;
  cudaEvent_t event = nullptr;
};

DeviceMark::DeviceMark(const CudaContext& cuda) : state_(std::make_unique<State>()) {
  state_->stream = cuda.stream();
  check_cuda(cudaEventCreateWithFlags(&state_->event, cudaEventDisableTiming), "mark");
}

DeviceMark::~DeviceMark() {
  if (state_->event != nullptr) cudaEventDestroy(state_->event);
}

void DeviceMark::set() { check_cuda(cudaEventRecord(state_->event, state_->stream), "mark"); }

// An event that was never recorded counts as done.
void DeviceMark::wait() const { check_cuda(cudaEventSynchronize(state_->event), "the GPU's work"); }

}  // namespace rk
