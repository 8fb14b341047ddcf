// The GPU that tests of this folder run on.
#pragma once

#include <gtest/gtest.h>

namespace rk {

// Skips the test that calls it, or fails it, where there is no GPU. Some of these tests also run on
// a GPU made of the host (tests/host_gpu), which is always there.
void require_gpu();
bool is_made_of_the_host();

// Tests on a GPU: skipped where none works, with the reason; `make test-gpu` sets RK_REQUIRE_GPU,
// which makes that a failure.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override { require_gpu(); }
};

}  // namespace rk
