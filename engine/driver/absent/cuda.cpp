// A build without CUDA asks no driver, and NVIDIA's profilers have nothing to see in it.
#include "engine/driver/device.h"
#include "engine/driver/gpu_state.h"
#include "engine/driver/profile.h"

namespace rk {

bool has_gpu_code() { return false; }

GpuReport probe_gpus() { return {}; }

std::string gpu_bus(int) { return ""; }

ProfileRange::ProfileRange(const std::string&, bool) {}

// Never pushed here.
ProfileRange::~ProfileRange() { static_cast<void>(pushed_); }

}  // namespace rk
