// A DeviceGroup as a training step uses it, over processes that are threads.
#include "engine/group/device_group.h"

#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/graph.h"
#include "tests/host_gpu/cuda/device.h"
#include "tests/support/messages.h"
#include "tests/support/thread_group.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rk {
namespace {

using Floats = std::vector<float>;

// Runs `work` for each of `size` processes.
void with_groups(int size, const std::function<void(const Context&, DeviceGroup&)>& work) {
  ThreadGroup::run(size, [&](ProcessGroup& processes) {
    const Context gpu(1, Device{.cuda = true});
    work(gpu, *make_device_group(gpu, processes));
  });
}

TEST(DeviceGroup, GathersInTheOrderOfRanks) {
  for (const int size : {1, 3}) {
    with_groups(size, [&](const Context&, DeviceGroup& group) {
      ASSERT_EQ(group.size(), size);
      const auto rank = static_cast<float>(group.rank());
      const auto own = DeviceBuffer::copy_of(Floats{10 * rank, 10 * rank + 1});
      const auto all = DeviceBuffer::of<float>(std::int64_t{2} * size);
      group.all_gather(own.as<float>(), all.as<float>(), 2);
      Floats expected;
      for (int r = 0; r < size; ++r) {
        expected.insert(expected.end(),
                        {10 * static_cast<float>(r), 10 * static_cast<float>(r) + 1});
      }
      EXPECT_EQ(all.values<float>(), expected);
      // In place: the own part is already inside the result.
      const auto in_place = DeviceBuffer::copy_of(Floats(expected.size(), -1));
      float* const mine = in_place.as<float>() + std::int64_t{2} * group.rank();
      mine[0] = 10 * rank;
      mine[1] = 10 * rank + 1;
      group.all_gather(mine, in_place.as<float>(), 2);
      EXPECT_EQ(in_place.values<float>(), expected);
    });
  }
}

// Two buckets of one buffer; what lies between them must not change.
TEST(DeviceGroup, SumsBucketsInPlace) {
  for (const int size : {1, 2, 4}) {
    with_groups(size, [&](const Context&, DeviceGroup& group) {
      const auto mine = static_cast<float>(group.rank() + 1);
      const auto gradients = DeviceBuffer::copy_of(Floats{mine, 2 * mine, 7, 3 * mine});
      group.begin_all_reduce(gradients.as<float>() + 3, 1);
      group.begin_all_reduce(gradients.as<float>(), 2);
      group.finish_all_reduces();
      const auto ranks = static_cast<float>(size * (size + 1)) / 2;
      EXPECT_EQ(gradients.values<float>(), (Floats{ranks, 2 * ranks, 7, 3 * ranks}));
      group.finish_all_reduces();  // nothing begun: nothing to wait for
      EXPECT_EQ(gradients.values<float>()[0], ranks);
    });
  }
}

// What does not wait for a sum reads NaN, captured or not; finish_all_reduces() makes the context's
// stream wait. Every round draws other paces of the streams.
TEST(DeviceGroup, SumsAreThereOnceFinished) {
  constexpr std::int64_t kCount = 100;
  for (int round = 0; round < 30; ++round) {
    const bool captured = round % 2 == 1;
    with_groups(3, [&](const Context& gpu, DeviceGroup& group) {
      const auto mine = static_cast<float>(group.rank() + 1);
      const auto started = DeviceBuffer::copy_of(Floats(2 * kCount, mine));
      const auto sums = DeviceBuffer::of<float>(2 * kCount);
      const auto early = DeviceBuffer::of<float>(kCount);
      const auto late = DeviceBuffer::of<float>(2 * kCount);
      const auto work = [&] {
        gpu.cuda().copy(sums.as<float>() + kCount, started.as<float>(), kCount * sizeof(float));
        group.begin_all_reduce(sums.as<float>() + kCount, kCount);
        gpu.cuda().copy(sums.as<float>(), started.as<float>(), kCount * sizeof(float));
        group.begin_all_reduce(sums.as<float>(), kCount);
        gpu.cuda().copy(early.as<float>(), sums.as<float>(), early.bytes());
        group.finish_all_reduces();
        gpu.cuda().copy(late.as<float>(), sums.as<float>(), late.bytes());
        gpu.cuda().clear(sums.as<float>(), sums.bytes());
      };
      work();
      if (captured) CudaGraph(gpu.cuda(), work).launch();
      EXPECT_EQ(late.values<float>(), Floats(2 * kCount, 6));
      EXPECT_EQ(sums.values<float>(), Floats(2 * kCount));
      if (!captured) {
        EXPECT_TRUE(std::isnan(early.values<float>()[0]));
      }
    });
  }
}

// A gather waits for what was put on the context's stream before it, and is waited for there.
TEST(DeviceGroup, AGatherIsInTheStreamsOrder) {
  constexpr std::int64_t kCount = 50;
  for (int round = 0; round < 30; ++round) {
    with_groups(2, [&](const Context& gpu, DeviceGroup& group) {
      const auto started = DeviceBuffer::copy_of(Floats(kCount, static_cast<float>(group.rank())));
      const auto own = DeviceBuffer::of<float>(kCount);
      const auto all = DeviceBuffer::of<float>(2 * kCount);
      const auto read = DeviceBuffer::of<float>(3 * kCount);
      for (int step = 0; step < 3; ++step) {
        gpu.cuda().copy(own.as<float>(), started.as<float>(), own.bytes());
        group.all_gather(own.as<float>(), all.as<float>(), kCount);
        gpu.cuda().copy(read.as<float>() + step * kCount, all.as<float>() + kCount, own.bytes());
        gpu.cuda().clear(all.as<float>(), all.bytes());
        gpu.cuda().clear(own.as<float>(), own.bytes());
      }
      EXPECT_EQ(read.values<float>(), Floats(3 * kCount, 1));
    });
  }
}

TEST(DeviceGroup, ANodeThatAddsToAGradientTooLateIsFoundOut) {
  with_groups(2, [](const Context& gpu, DeviceGroup& group) {
    const auto gradients = DeviceBuffer::copy_of(Floats{1, 2});
    group.begin_all_reduce(gradients.as<float>(), 2);
    gpu.cuda().clear(gradients.as<float>() + 1, sizeof(float));
    EXPECT_TRUE(holds(message_of<DeviceError>([&] {
                        group.finish_all_reduces();
                        gpu.synchronize();
                      }),
                      "somebody wrote to a collective's result"));
  });
}

// NCCL itself would wait, or fail without a reason.
TEST(DeviceGroup, TwoProcessesOnOneGpuAreRefused) {
  host_gpu::share_one_gpu(true);
  ThreadGroup::run(2, [](ProcessGroup& processes) {
    const Context gpu(1, Device{.cuda = true});
    const std::string said = message_of<DeviceError>([&] { make_device_group(gpu, processes); });
    EXPECT_TRUE(said.starts_with("processes 0 and 1 have the same GPU, host 0;")) << said;
  });
  host_gpu::share_one_gpu(false);
}

}  // namespace
}  // namespace rk
