#include "engine/device/cuda/buffer.h"

#include "engine/base/error.h"
#include "tests/cuda/gpu.h"

namespace rk {
namespace {

using DeviceBufferTest = OnGpu;

// More than any GPU has: the program says so in one line and can still use the device.
TEST_F(DeviceBufferTest, OutOfMemorySaysWhatThereIsAndLeavesTheDeviceWorking) {
  try {
    const DeviceBuffer buffer(std::size_t{1} << 50);
    ADD_FAILURE() << "a pebibyte was given";
  } catch (const DeviceError& error) {
    const std::string said = error.what();
    EXPECT_TRUE(said.starts_with("the GPU is out of memory: 1048576.00 GiB asked for, ")) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
  EXPECT_EQ(DeviceBuffer::copy_of(std::vector<int>{1, 2, 3}).values<int>(),
            (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace rk
