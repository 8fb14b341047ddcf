#include "training/equal_processes.h"

#include "tests/support/thread_group.h"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <set>

namespace rk {
namespace {

// What the processes say if `change` is made to the parameters of process 1.
std::set<std::string> said_of(const std::function<void(float*)>& change) {
  std::set<std::string> said;
  std::mutex mutex;
  ThreadGroup::run(3, [&](ProcessGroup& group) {
    Parameters parameters;
    const ParameterId id = parameters.declare("w", Shape{40}, {Initial::Kind::kNormal, 1.0});
    parameters.initialise(Context(1), 5);
    if (group.rank() == 1) change(parameters.value(id));
    RunState run{};
    run.step = 17;
    std::string mine;
    try {
      require_equal_parameters(group, parameters, run);
    } catch (const UnequalProcesses& error) {
      mine = error.what();
    }
    const std::lock_guard guard(mutex);
    said.insert(mine);
  });
  return said;
}

TEST(EqualProcesses, EveryBitOfEveryParameterCountsAndItsPlace) {
  EXPECT_EQ(said_of([](float*) {}), std::set<std::string>{""});
  const std::vector<std::function<void(float*)>> changes = {
      [](float* w) { w[39] = std::nextafter(w[39], 2.0F); },
      [](float* w) { w[0] = -w[0]; },
      [](float* w) { std::swap(w[3], w[20]); },
  };
  for (const auto& change : changes) {
    const std::set<std::string> said = said_of(change);
    ASSERT_EQ(said.size(), 1U) << "all end alike";
    EXPECT_TRUE(
        said.begin()->starts_with("process 1 has other parameters than process 0 after step 17"))
        << *said.begin();
  }
}

}  // namespace
}  // namespace rk
