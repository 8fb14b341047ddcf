// The GPU that tests of this folder run on.
#pragma once

#include "engine/dispatch.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace rk {

// Tests on a GPU: skipped where none works, with the reason; `make test-gpu` sets RK_REQUIRE_GPU,
// which makes that a failure.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    const DeviceChoice choice = choose_device(parse_device("auto"), probe_gpus());
    if (choice.device.cuda) return;
    if (std::getenv("RK_REQUIRE_GPU") != nullptr) FAIL() << choice.why;
    GTEST_SKIP() << choice.why;
  }
};

}  // namespace rk
