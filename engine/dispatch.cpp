#include "engine/dispatch.h"

#if RK_CUDA
#include "engine/device_cuda.h"
#endif

namespace rk {

#if RK_CUDA
bool has_cuda() { return true; }
GpuReport probe_gpus() { return probe_cuda(); }
#else
bool has_cuda() { return false; }
GpuReport probe_gpus() { return GpuReport(); }
#endif

}  // namespace rk
