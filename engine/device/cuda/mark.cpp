#include "engine/device/cuda/mark.h"

#include "engine/device/cuda/error.h"

namespace rk {

struct DeviceMark::State {
  CudaStream stream = nullptr;
  cudaEvent_t event = nullptr;
};

DeviceMark::DeviceMark(const CudaContext& cuda) : state_(std::make_unique<State>()) {
  state_->stream = cuda.stream();
  // Without cudaEventBlockingSync the host spins while it waits, which is most of a training step,
  // on a core that the loader's decoders need.
  check_cuda(
      cudaEventCreateWithFlags(&state_->event, cudaEventDisableTiming | cudaEventBlockingSync),
      "mark");
}

DeviceMark::~DeviceMark() {
  if (state_->event != nullptr) cudaEventDestroy(state_->event);
}

void DeviceMark::set() { check_cuda(cudaEventRecord(state_->event, state_->stream), "mark"); }

// An event that was never recorded counts as complete.
void DeviceMark::wait() const { check_work(cudaEventSynchronize(state_->event), "the GPU's work"); }

}  // namespace rk
