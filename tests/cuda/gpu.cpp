#include "tests/cuda/gpu.h"

#include "engine/driver/device.h"

#include <cstdlib>

namespace rk {

void require_gpu() {
  const DeviceChoice choice = choose_device(parse_device("auto"), probe_gpus());
  if (choice.device.cuda) return;
  if (std::getenv("RK_REQUIRE_GPU") != nullptr) FAIL() << choice.why;
  GTEST_SKIP() << choice.why;
}

bool threads_have_gpus() { return false; }
bool rounds_as_a_card() { return true; }

}  // namespace rk
