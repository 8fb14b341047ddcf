#include "engine/device/out_of_memory.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rk {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(OutOfMemory, SaysWhatThereIs) {
  EXPECT_EQ(out_of_memory(3 * kGiB, kGiB / 2, 80 * kGiB),
            "the GPU is out of memory: 3.00 GiB asked for, 0.50 GiB of 80.00 GiB free; take "
            "less at a time (train: --chunk, --batch, --eval-batch; eval: --batch) or end what "
            "else runs on the GPU (nvidia-smi)");
}

}  // namespace
}  // namespace rk
