#include "engine/device/cuda/error.h"

#include "engine/base/error.h"
#include "engine/driver/device.h"

namespace rk {

void check_cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw DeviceError(cuda_failure(what, cudaGetErrorString(error), static_cast<int>(error)));
}

}  // namespace rk
