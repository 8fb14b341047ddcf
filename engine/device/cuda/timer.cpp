#include "engine/device/cuda/timer.h"

#include "engine/device/cuda/error.h"

namespace rk {

struct DeviceTimer::State {
  CudaStream stream;
  cudaEvent_t begin = nullptr, end = nullptr;
};

DeviceTimer::DeviceTimer(const CudaContext& cuda) : state_(std::make_unique<State>()) {
  state_->stream = cuda.stream();
  check_cuda(cudaEventCreate(&state_->begin), "timer");
  check_cuda(cudaEventCreate(&state_->end), "timer");
}

DeviceTimer::~DeviceTimer() {
  if (state_->begin != nullptr) cudaEventDestroy(state_->begin);
  if (state_->end != nullptr) cudaEventDestroy(state_->end);
}

void DeviceTimer::start() { check_cuda(cudaEventRecord(state_->begin, state_->stream), "timer"); }

double DeviceTimer::stop() {
  check_cuda(cudaEventRecord(state_->end, state_->stream), "timer");
  check_work(cudaEventSynchronize(state_->end), "the GPU's work");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, state_->begin, state_->end), "timer");
  return static_cast<double>(milliseconds);
}

}  // namespace rk
