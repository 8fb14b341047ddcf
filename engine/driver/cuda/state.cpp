#include "engine/driver/gpu_state.h"

#include <cuda_runtime_api.h>

namespace rk {

std::string gpu_bus(int index) {
  char bus[32] = {};
  if (cudaDeviceGetPCIBusId(bus, sizeof(bus), index) == cudaSuccess) return bus;
  cudaGetLastError();
  return "";
}

}  // namespace rk
