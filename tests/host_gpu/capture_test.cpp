// A step that cannot be captured must run all the same.
#include "tests/host_gpu/cuda/stream.h"
#include "tests/support/heard_notes.h"
#include "tests/support/messages.h"
#include "tests/training/noise_batch.h"
#include "training/trainer.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace rk
