#include "tools/cli/progress.h"
#include "tests/support/messages.h"
#include "tools/cli/messages.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

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

// As if a bar stood on the terminal: the notes of loading threads come while one does.
TEST(Progress, ALineTakesTheBarsPlace) {
  testing::internal::CaptureStderr();
  tell("first");
  behind_bar = true;
  tell("of {}", 2);
  tell("last");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "first\n\r\x1b[Kof 2\nlast\n");
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

// Neither a loss that arrives after the first step nor digits that come and go move the bar.
TEST(Progress, BarKeepsItsLength) {
  for (const std::string note : {"loss 0.2310", "loss 0.2310, run 12:02 left"}) {
    for (const int width : {79, 99, 119}) {
      ProgressState state;
      state.label = "epoch 1/2";
      state.unit = "images";
      state.total = 4800;
      state.note_columns = note.size();
      const auto length = [&] {
        const std::string bar = progress_bar(state, width);
        EXPECT_LE(static_cast<int>(bar.size()), width);
        return bar.find(']') - bar.find('[');  // 0 without a bar
      };
      const std::size_t first = length();
      EXPECT_GE(first, 6U) << note << width;
      state.note = note;
      for (state.done = 32; state.done <= state.total; state.done += 32) {
        state.rate = state.done < 1000 ? 9.62 : 123.4;
        state.seconds_left = static_cast<double>(state.total - state.done) / state.rate;
        ASSERT_EQ(length(), first) << progress_bar(state, width);
      }
    }
  }
}

// At 80 columns the loss is worth more than the counts, which the share tells too.
TEST(Progress, CountsGoBeforeTheBar) {
  EXPECT_EQ(progress_bar(example(), 70),
            "epoch 3   34%  [####----------]  123 images/s  1:15 left  loss 0.231");
  EXPECT_EQ(progress_bar(example(), 55), "epoch 3   34%  [####----------]  1:15 left  loss 0.231");
}

TEST(Progress, OnlyAllOfItIsAHundredPercent) {
  ProgressState state = example();
  state.done = 999;
  EXPECT_TRUE(
      progress_bar(state, 120).starts_with("epoch 3   99%  [#############################-]"));
  state.done = 1000;
  EXPECT_TRUE(
      progress_bar(state, 120).starts_with("epoch 3  100%  [##############################]"));
}

TEST(Progress, TheShortestBarHasFivePlaces) {
  int width = 1;
  while (progress_bar(example(), width).find('[') == std::string::npos) ++width;
  EXPECT_TRUE(holds(progress_bar(example(), width), "[#----]")) << width;
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
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, OffATerminalShortLoopsLeaveTheLogAlone) {
  testing::internal::CaptureStderr();
  {
    Progress progress("decoding", 10, "images");
    for (int i = 1; i <= 10; ++i) progress.update(i);
    progress.finish();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// The last line says how long it took; one before it that all is done would say the same.
TEST(Progress, OffATerminalTheEndIsSaidOnce) {
  testing::internal::CaptureStderr();
  {
    Progress progress("epoch 3/4", 3, "images", false, "", 0);
    for (int i = 1; i <= 3; ++i) progress.update(i);
  }
  std::istringstream lines(testing::internal::GetCapturedStderr());
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(all[1].starts_with("epoch 3/4   66%  2/3  ")) << all[1];
  EXPECT_TRUE(all[2].starts_with("epoch 3/4  3 images in 0:00  ")) << all[2];
}

}  // namespace
}  // namespace rk
