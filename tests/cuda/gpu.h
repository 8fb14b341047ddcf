// The GPU that this folder's tests run on.
#pragma once

#include <gtest/gtest.h>

namespace rk {

// Skips the calling test if there is no GPU, or fails it (RK_REQUIRE_GPU). Some of these tests also
// run on the emulated GPU (tests/host_gpu), which is made of the host and always there.
void require_gpu();
bool is_made_of_the_host();

// Tests on a GPU: skipped, with the reason, if none works; `make test-gpu` sets RK_REQUIRE_GPU,
// which makes that a failure.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override { require_gpu(); }
};

}  // namespace rk
