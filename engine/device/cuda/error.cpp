#include "engine/device/cuda/error.h"

#include "engine/base/error.h"
#include "engine/driver/device.h"

#include <string>

namespace rk {
namespace {

template <class Error> void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  const auto code = static_cast<int>(error);
  const std::string failure = cuda_failure(what, cudaGetErrorString(error), code);
  if (ends_all_work(code)) throw DeviceFault(failure);
  throw Error(failure);
}

}  // namespace

void check_cuda(cudaError_t error, const char* what) { check<DeviceError>(error, what); }

void check_work(cudaError_t error, const char* what) {
  // What may not be captured has waited for nothing.
  const bool refused =
      error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
  if (refused) return check_cuda(error, what);
  check<DeviceFault>(error, what);
}

}  // namespace rk
