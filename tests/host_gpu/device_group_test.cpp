// A DeviceGroup as a training step uses it, over processes that are threads.
#include "engine/group/device_group.h"

#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "tests/support/thread_group.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rk {
namespace {

using Floats = std::vector<float>;

// Runs `work` for each of `size` processes.
void with_groups(int size, const std::function<void(DeviceGroup&)>& work) {
  ThreadGroup::run(size, [&](ProcessGroup& processes) {
    const Context gpu(1, Device{.cuda = true});
    work(*make_device_group(gpu, processes));
  });
}

TEST(DeviceGroup, GathersInTheOrderOfRanks) {
  for (const int size : {1, 3}) {
    with_groups(size, [&](DeviceGroup& group) {
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
    with_groups(size, [&](DeviceGroup& group) {
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

// Without GPUs all that was begun is one sum, in whichever order it was.
TEST(DeviceGroup, SumsOfTheHostBeginInAnyOrder) {
  for (const bool last_first : {true, false}) {
    ThreadGroup::run(2, [&](ProcessGroup& processes) {
      const Context cpu(1);
      const auto group = make_device_group(cpu, processes);
      const auto mine = static_cast<float>(processes.rank() + 1);
      Floats gradients{mine, 2 * mine, 3 * mine, 4 * mine};
      group->begin_all_reduce(gradients.data() + (last_first ? 2 : 0), 2);
      group->begin_all_reduce(gradients.data() + (last_first ? 0 : 2), 2);
      group->finish_all_reduces();
      EXPECT_EQ(gradients, (Floats{3, 6, 9, 12}));
    });
  }
}

// The stand-in must find an optimizer that does not wait, and a node that adds to a gradient too
// late.
TEST(DeviceGroup, AStepThatDoesNotWaitIsFoundOut) {
  with_groups(2, [](DeviceGroup& group) {
    const auto gradients = DeviceBuffer::copy_of(Floats{1, 2});
    group.begin_all_reduce(gradients.as<float>(), 2);
    EXPECT_TRUE(std::isnan(gradients.values<float>()[0]));
    gradients.as<float>()[1] = 5;
    EXPECT_THROW(group.finish_all_reduces(), DeviceError);
  });
}

}  // namespace
}  // namespace rk
