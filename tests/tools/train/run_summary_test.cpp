#include "tools/train/run_summary.h"

#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(RunSummary, SaysWhyARunIsOver) {
  const TemporaryFolder folder;
  TrainSettings settings;
  settings.epochs = 4;
  RunState run;
  const TrainRecord record(folder.path().string(), RecordOptions{});
  const BestTracker best(settings, false);
  const auto why = [&](std::int64_t epoch, std::int64_t batch) {
    run.epoch = epoch;
    run.batch = batch;
    return why_over({.settings = settings, .run = run, .record = record, .best = best});
  };
  EXPECT_EQ(why(4, 0), "all 4 epochs are done; more with --epochs");
  EXPECT_EQ(why(5, 0), "5 epochs are done, more than --epochs 4; more with a larger one");
  EXPECT_EQ(why(4, 2),
            "4 epochs and a part of the next are done, more than --epochs 4; more with a larger "
            "one");
  settings.epochs = 1;
  EXPECT_EQ(why(1, 0), "the one epoch is done; more with --epochs");
  settings.epochs = 0;
  EXPECT_EQ(why(0, 0), "is as before the first step; training goes on with --epochs");
}

}  // namespace
}  // namespace rk
