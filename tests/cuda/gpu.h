// The GPU that this folder's tests run on.
#pragma once

#include <gtest/gtest.h>

namespace rk {

// Skips the calling test if there is no GPU, or fails it (RK_REQUIRE_GPU). Some of these tests also
// run on the emulated GPU (tests/host_gpu), which is always there.
void require_gpu();
// Whether threads of one process can make a group of GPUs, of which each has its own.
bool threads_have_gpus();

// What sizes and bounds of tests depend on: whether the GPU rounds operands of TF32 and adds up in
// an order of its own. The emulated one does so with RK_ROUNDING_SEED (tests/host_gpu/rounding.h).
bool rounds_as_a_card();

// Tests on a GPU: skipped, with the reason, if none works; `make test-gpu` sets RK_REQUIRE_GPU,
// which makes that a failure.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override { require_gpu(); }
};

}  // namespace rk
