#include "engine/driver/gpu_state.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(GpuState, IsWhatTheDriverSaysOfThatCard) {
  const auto state = gpu_state("0000:1B:00.0", RK_FAKE_NVML);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->sm_mhz, 1755);
  EXPECT_EQ(state->memory_mhz, 3201);
  EXPECT_EQ(state->most_sm_mhz, 1980);
  EXPECT_EQ(state->most_memory_mhz, 0);  // the driver does not know
  EXPECT_DOUBLE_EQ(state->watts, 512.25);
  EXPECT_EQ(state->celsius, 41);
}

TEST(GpuState, IsNothingWhereThereIsNoSuchCardOrNoDriver) {
  EXPECT_FALSE(gpu_state("0000:2C:00.0", RK_FAKE_NVML).has_value());
  EXPECT_FALSE(gpu_state("0000:1B:00.0", "libno-such-library.so.1").has_value());
  EXPECT_FALSE(gpu_state("0000:1B:00.0", "libm.so.6").has_value());
}

}  // namespace
}  // namespace rk
