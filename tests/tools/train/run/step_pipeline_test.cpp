#include "tools/train/run/step_pipeline.h"

#include "data/sources/open_dataset.h"
#include "engine/base/error.h"
#include "losses/registry.h"
#include "tests/data/picture_folder.h"
#include "tests/support/heard_notes.h"
#include "tests/support/messages.h"
#include "tests/training/noise_batch.h"

#include <optional>

namespace rk {
namespace {

constexpr int kSize = 16;

TrainerOptions frozen_trainer() {
  TrainerOptions options = small_trainer("contrastive", 4);
  options.batchnorm = BatchNormMode::kRunning;
  return options;
}

class StepPipelineTest : public testing::Test {
 protected:
  StepPipelineTest() { folder_.classes("train/c", 2, 2); }

  // Over the pictures as they are now, in epochs of two batches.
  StepPipeline& begin() {
    data_.emplace(open_dataset(folder_.spec(), Split::kTrain));
    sampler_ = make_sampler("pk:k=2", *data_, 4, 1, 2);
    AugmentOptions augment;
    augment.size = kSize;
    augment.resize = kSize;
    return steps_.emplace(
        trainer_, std::make_unique<Loader>(*data_, *sampler_, augment, LoaderOptions()), run_);
  }

  const PictureFolder folder_;
  std::optional<Dataset> data_;
  std::unique_ptr<Sampler> sampler_;
  const Context context_;
  Trainer trainer_{context_, frozen_trainer()};
  RunState run_;
  std::optional<StepPipeline> steps_;
};

TEST_F(StepPipelineTest, CountsInTheRunsState) {
  StepPipeline& steps = begin();
  EXPECT_EQ(steps.step_seconds(), 0);
  double sum = 0;
  for (std::int64_t batch = 0; batch < 2; ++batch) {
    EXPECT_EQ(steps.next_batch(), batch);
    const Batch* fetched = steps.fetch();
    ASSERT_NE(fetched, nullptr);
    EXPECT_EQ(fetched->index, batch);
    EXPECT_EQ(steps.fetch(), fetched);  // until a step takes it
    steps.advance();
    steps.finish();
    EXPECT_FALSE(steps.under_way());
    sum += trainer_.last().loss;
    EXPECT_EQ(run_.batch, batch + 1);
    EXPECT_EQ(run_.step, batch + 1);
    EXPECT_EQ(run_.loss_sum, sum);
  }
  EXPECT_GT(steps.step_seconds(), 0);
  EXPECT_GE(steps.take_waited_seconds(), 0);
  EXPECT_EQ(steps.take_waited_seconds(), 0);  // all taken
}

TEST_F(StepPipelineTest, TakesOnlyTheBatchThatTheRunIsAt) {
  StepPipeline& steps = begin();
  const std::string elsewhere = "[train] the loader is not where the run is";
  EXPECT_EQ(message_of<std::invalid_argument>([&] { steps.advance(); }), elsewhere);
  steps.fetch();
  run_.batch = 1;
  EXPECT_EQ(message_of<std::invalid_argument>([&] { steps.advance(); }), elsewhere);
  EXPECT_FALSE(steps.under_way());
}

TEST_F(StepPipelineTest, KeepsTheLoadersErrorForLater) {
  const HeardNotes notes;
  for (const char* name : {"train/c1/0.png", "train/c1/1.png"}) {
    folder_.write(name, "no picture");
  }
  StepPipeline& steps = begin();
  EXPECT_EQ(steps.failure(), nullptr);
  EXPECT_EQ(steps.fetch(), nullptr);
  EXPECT_EQ(steps.fetch(), nullptr);
  ASSERT_NE(steps.failure(), nullptr);
  EXPECT_NE(message_of<InputError>([&] { std::rethrow_exception(steps.failure()); }), "");
  EXPECT_FALSE(steps.under_way());
  EXPECT_EQ(run_.batch, 0);
}

}  // namespace
}  // namespace rk
