#include "engine/device/out_of_memory.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rk {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(OutOfMemory, SaysWhatThereIs) {
  EXPECT_EQ(out_of_memory(3 * kGiB, kGiB / 2, 80 * kGiB),
            "the GPU is out of memory: 3.00 GiB asked for, 0.50 GiB of 80.00 GiB free; end "
            "what else runs on it (nvidia-smi)");
}

}  // namespace
}  // namespace rk
