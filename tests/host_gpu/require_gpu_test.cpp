// In place of tests/cuda/gpu.cpp: the emulated GPU is always there.
#include "tests/cuda/gpu.h"

#include "tests/host_gpu/rounding.h"

namespace rk {

void require_gpu() {}
bool threads_have_gpus() { return RK_HAS_NCCL; }
bool rounds_as_a_card() { return host_gpu::rounding_seed().has_value(); }

}  // namespace rk
