#include "engine/base/error.h"
#include "engine/group/device_group.h"

namespace rk {

std::unique_ptr<DeviceGroup> make_device_group(const CudaContext&, ProcessGroup&) {
  fail<DeviceError>("this build has no GPU code; use --device cpu");
}

}  // namespace rk
