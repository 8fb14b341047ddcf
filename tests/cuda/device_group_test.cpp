// NCCL between the GPUs of this machine, one thread a GPU.
#include "engine/group/device_group.h"
#include "engine/driver/device.h"

#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "tests/cuda/gpu.h"
#include "tests/support/thread_group.h"

#include <algorithm>
#include <cmath>
#include <mutex>

namespace rk {
namespace {

class DeviceGroupTest : public OnGpu {
 protected:
  // Runs `work` for each GPU. A DeviceError in one ends the program, as the others would wait.
  static void with_groups(int size, const std::function<void(const Context&, DeviceGroup&)>& work) {
    ThreadGroup::run(size, [&](ProcessGroup& processes) {
      const Context gpu(1, Device{.cuda = true, .index = processes.rank()});
      const auto group = make_device_group(gpu, processes);
      work(gpu, *group);
    });
  }
  static int gpus() { return static_cast<int>(probe_gpus().cards.size()); }
};

// Like 25 million gradients, but fewer: not a round number of them, beside work on the stream.
TEST_F(DeviceGroupTest, GathersAndSumsOnAllGpus) {
  if (gpus() < 2) GTEST_SKIP() << "one GPU; this test is about two";
  const int size = std::min(gpus(), 8);
  constexpr std::int64_t kCount = 1'000'003;
  std::mutex mutex;
  std::vector<std::vector<float>> sums;
  with_groups(size, [&](const Context& gpu, DeviceGroup& group) {
    std::vector<float> own(kCount);
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i] = std::sin(static_cast<float>(i) + static_cast<float>(group.rank()));
    }
    const auto values = DeviceBuffer::copy_of(own);
    const auto work = DeviceBuffer::copy_of(own);
    const auto all = DeviceBuffer::of<float>(kCount * size);
    group.all_gather(values.as<float>(), all.as<float>(), kCount);
    constexpr std::int64_t kFirst = 700'001;
    gpu.copy(work.as<float>(), values.as<float>(), kCount * sizeof(float));
    group.begin_all_reduce(work.as<float>() + kFirst, kCount - kFirst);
    group.begin_all_reduce(work.as<float>(), kFirst);
    group.finish_all_reduces();
    gpu.copy(values.as<float>(), work.as<float>(), kCount * sizeof(float));
    gpu.synchronize();
    const auto gathered = all.values<float>();
    const auto summed = values.values<float>();
    for (std::size_t i = 0; i < summed.size(); ++i) {
      double expected = 0, largest = 0;
      for (int r = 0; r < size; ++r) {
        const float part = gathered[static_cast<std::size_t>(r) * kCount + i];
        if (r == group.rank()) {
          ASSERT_EQ(part, own[i]);
        }
        expected += static_cast<double>(part);
        largest += std::fabs(static_cast<double>(part));
      }
      // Every addition rounds once, in an order that is NCCL's.
      ASSERT_NEAR(static_cast<double>(summed[i]), expected, largest * size * 6e-8) << i;
    }
    const std::lock_guard lock(mutex);
    sums.push_back(summed);
  });
  for (const auto& other : sums) EXPECT_EQ(other, sums.front());
}

// NCCL itself would wait, or fail without a reason.
TEST_F(DeviceGroupTest, TwoProcessesOnOneGpuAreRefused) {
  ThreadGroup::run(2, [](ProcessGroup& processes) {
    const Context gpu(1, Device{.cuda = true});
    try {
      make_device_group(gpu, processes);
      ADD_FAILURE() << "both were taken";
    } catch (const DeviceError& error) {
      const std::string said = error.what();
      EXPECT_TRUE(said.starts_with("processes 0 and 1 have the same GPU, ")) << said;
    }
  });
}

TEST_F(DeviceGroupTest, AProcessAloneNeedsNoNccl) {
  with_groups(1, [](const Context& gpu, DeviceGroup& group) {
    const auto own = DeviceBuffer::copy_of(std::vector<float>{1, 2});
    const auto all = DeviceBuffer::of<float>(2);
    group.all_gather(own.as<float>(), all.as<float>(), 2);
    group.begin_all_reduce(all.as<float>(), 2);
    group.finish_all_reduces();
    gpu.synchronize();
    EXPECT_EQ(all.values<float>(), (std::vector<float>{1, 2}));
  });
}

}  // namespace
}  // namespace rk
