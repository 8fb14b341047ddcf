// `bench loss` on a GPU.
#pragma once

#include "tools/cli/timing.h"
#include "tools/inspect/loss_file.h"

#include <cstdint>
#include <string>

namespace rk {

struct DeviceLossTimes {
  Timing total, products, rows;
  double copy_rate = 0;  // bytes a second, read and written, of arrays beyond the caches
  std::int64_t bytes = 0;
  int kernels = 0;  // of our own, beside the products
  std::string device_name;
};

// Value and gradient of `spec` on GPU `device`, and its products alone, alternating `repeats`
// times. The data lies on the GPU; the labels' way there is not in the times, as it is not in a
// training step's. DeviceError where the build has no GPU code for the loss.
DeviceLossTimes time_device_loss(int device, const LossSpec& spec, const LossData<float>& data,
                                 int repeats);

}  // namespace rk
