#include "engine/group/device_group.h"
#include "tests/support/thread_group.h"

#include <gtest/gtest.h>

#include <vector>

namespace rk {
namespace {

// Without GPUs all that was begun is one sum, in whichever order it was.
TEST(DeviceGroup, SumsBeginInAnyOrder) {
  for (const bool last_first : {true, false}) {
    ThreadGroup::run(2, [&](ProcessGroup& processes) {
      const Context cpu(1);
      const auto group = make_device_group(cpu, processes);
      const auto mine = static_cast<float>(processes.rank() + 1);
      std::vector<float> gradients{mine, 2 * mine, 3 * mine, 4 * mine};
      group->begin_all_reduce(gradients.data() + (last_first ? 2 : 0), 2);
      group->begin_all_reduce(gradients.data() + (last_first ? 0 : 2), 2);
      group->finish_all_reduces();
      EXPECT_EQ(gradients, (std::vector<float>{3, 6, 9, 12}));
    });
  }
}

}  // namespace
}  // namespace rk
