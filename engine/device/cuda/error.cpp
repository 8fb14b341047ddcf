#include "engine/device/cuda/error.h"

#include "engine/base/error.h"
#include "engine/driver/device.h"

namespace rk {

void check_cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw DeviceError(cuda_failure(what, cudaGetErrorString(error), static_cast<int>(error)));
}

void check_work(cudaError_t error, const char* what) {
  // What may not be captured has waited for nothing.
  const bool refused =
      error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
  if (error == cudaSuccess || refused) return check_cuda(error, what);
  cudaGetLastError();
  throw DeviceFault(cuda_failure(what, cudaGetErrorString(error), static_cast<int>(error)));
}

}  // namespace rk
