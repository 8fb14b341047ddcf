#include "tools/gpu.h"

#include "engine/device.h"
#include "engine/device_buffer.h"
#include "engine/device_timer.h"
#include "engine/dispatch.h"
#include "tools/timing.h"

namespace rk {

std::shared_ptr<const CudaContext> open_gpu(const std::string& device) {
  if constexpr (kHasCuda) {
    const DeviceRequest request = parse_device(device);
    if (request.kind == DeviceRequest::Kind::kCuda) {
      return std::make_shared<const CudaContext>(request.index.value_or(0));
    }
  }
  return nullptr;
}

std::string gpu_name(const CudaContext& cuda) {
  if constexpr (kHasCuda) {
    return cuda.name();
  } else {
    return "";
  }
}

double gpu_copy_rate(const CudaContext& cuda) {
  if constexpr (kHasCuda) {
    constexpr std::size_t kBytes = std::size_t{512} << 20;
    const DeviceBuffer from(kBytes), to(kBytes);
    DeviceTimer timer(cuda);
    std::vector<double> copies;
    for (int repeat = 0; repeat < 5; ++repeat) {
      timer.start();
      cuda.copy(to.as<std::byte>(), from.as<std::byte>(), kBytes);
      copies.push_back(timer.stop());
    }
    return 2.0 * kBytes / summarize(copies).median * 1e3;
  } else {
    return 0;
  }
}

}  // namespace rk
