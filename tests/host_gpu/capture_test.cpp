// A step that cannot be captured must run all the same.
#include "engine/base/integers.h"
#include "tests/host_gpu/cuda/stream.h"
#include "tests/support/heard_notes.h"
#include "tests/support/messages.h"
#include "tests/support/thread_group.h"
#include "tests/training/noise_batch.h"
#include "training/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace rk {
namespace {

std::vector<float> trained(bool graph) {
  TrainerOptions options = small_trainer("fastap", 8);
  options.capture = graph;
  const Context gpu(1, Device{.cuda = true});
  Trainer trainer(gpu, options);
  for (std::uint32_t s = 0; s < 3; ++s) trainer.step(NoiseBatch(8, 16, s).get());
  EXPECT_FALSE(trainer.train_step().captured());
  trainer.download();
  return {trainer.parameters().values().begin(), trainer.parameters().values().end()};
}

class CaptureTest : public ::testing::Test {
 protected:
  void SetUp() override { host_gpu::refuse_captures(true); }
  void TearDown() override { host_gpu::refuse_captures(false); }
  const HeardNotes notes_;
};

TEST_F(CaptureTest, AStepThatCannotBeCapturedIsStartedKernelByKernel) {
  const std::vector<float> got = trained(true);
  ASSERT_EQ(notes_.lines.size(), 1U);
  EXPECT_TRUE(holds(notes_.lines[0], "cannot be captured"));
  EXPECT_EQ(got, trained(false));
}

// Of two processes, the second captures its step; it must not replay what the first cannot.
TEST(CaptureOfSeveral, AllReplayOrNone) {
  const HeardNotes notes;
  std::array<std::vector<float>, 2> got;
  ThreadGroup::run(2, [&](ProcessGroup& processes) {
    host_gpu::refuse_captures(processes.first());
    TrainerOptions options = small_trainer("fastap", 8);
    options.processes = &processes;
    const Context gpu(1, Device{.cuda = true});
    Trainer trainer(gpu, options);
    for (std::uint32_t s = 0; s < 3; ++s) {
      trainer.step(NoiseBatch(8, 16, s).part(processes.rank(), 2));
      EXPECT_FALSE(trainer.train_step().captured());
    }
    trainer.download();
    got[at(processes.rank())].assign(trainer.parameters().values().begin(),
                                     trainer.parameters().values().end());
  });
  EXPECT_EQ(got[0], got[1]);
  ASSERT_EQ(notes.lines.size(), 2U);
  EXPECT_EQ(std::ranges::count_if(notes.lines,
                                  [](const std::string& line) {
                                    return bool{holds(line, "another process cannot")};
                                  }),
            1);
}

}  // namespace
}  // namespace rk
