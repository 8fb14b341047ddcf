#include "tools/cli/progress.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

ProgressState example() {
  ProgressState state;
  state.label = "epoch 3";
  state.unit = "images";
  state.done = 340;
  state.total = 1000;
  state.rate = 123.4;
  state.seconds_left = 75;
  state.note = "loss 0.231";
  return state;
}

TEST(Progress, ClockReadsLikeAClock) {
  EXPECT_EQ(clock_text(0), "0:00");
  EXPECT_EQ(clock_text(59.6), "1:00");
  EXPECT_EQ(clock_text(3700), "1:01:40");
  EXPECT_EQ(clock_text(1e300), "1000:00:00");
  EXPECT_EQ(clock_text(-1), "0:00");
}

TEST(Progress, TextSaysShareRateAndTimeLeft) {
  EXPECT_EQ(progress_text(example()),
            "epoch 3   34%  340/1000  123 images/s  1:15 left  loss 0.231");
}

TEST(Progress, BarFillsByShare) {
  EXPECT_EQ(progress_bar(example(), 120),
            "epoch 3   34%  [##########--------------------]  340/1000  123 images/s  1:15 left  "
            "loss 0.231");
}

TEST(Progress, FitsEveryWidth) {
  for (int width = 1; width <= 140; ++width) {
    EXPECT_LE(static_cast<int>(progress_bar(example(), width).size()), width);
  }
  EXPECT_EQ(progress_bar(example(), 25), "epoch 3   34%  1:15 left");
}

TEST(Progress, UnknownTotalHasNoShare) {
  ProgressState state = example();
  state.total = 0;
  EXPECT_EQ(progress_text(state), "epoch 3  340 images  123 images/s  loss 0.231");
}

TEST(Progress, MoreThanTheTotalIsFull) {
  ProgressState state = example();
  state.done = 2000;
  EXPECT_EQ(progress_bar(state, 120).find('-'), std::string::npos);
}

TEST(Progress, QuietSaysNothing) {
  testing::internal::CaptureStderr();
  {
    Progress progress("x", 10, "images", true);
    progress.update(5);
    progress.message("note");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, OffATerminalShortLoopsLeaveTheLogAlone) {
  testing::internal::CaptureStderr();
  {
    Progress progress("decoding", 10, "images");
    for (int i = 1; i <= 10; ++i) progress.update(i);
    progress.message("note");
    progress.finish();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "note\n");
}

}  // namespace
}  // namespace rk
