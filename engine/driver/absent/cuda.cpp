// Stand-ins for a build without CUDA: no driver to ask, nothing for NVIDIA's profilers to see.
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
