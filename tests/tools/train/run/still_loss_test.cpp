#include "tools/train/run/still_loss.h"

#include "tests/tools/train/train_program.h"

#include <limits>

namespace rk {
namespace {

constexpr double kMargin = 0.3;

// Adds `loss` as often as given and returns how often a standstill was reported.
int reports(StillLoss& still, double loss, std::int64_t times) {
  int count = 0;
  for (std::int64_t i = 0; i < times; ++i) count += still.add(loss) ? 1 : 0;
  return count;
}

TEST(StillLoss, IsReportedOncePerStandstill) {
  StillLoss still;
  for (int standstill = 0; standstill < 2; ++standstill) {
    EXPECT_EQ(reports(still, kMargin, StillLoss::kSteps - 1), 0);
    EXPECT_TRUE(still.add(kMargin));
    EXPECT_EQ(reports(still, kMargin, 3 * StillLoss::kSteps), 0);
    EXPECT_FALSE(still.add(2 * kMargin));
  }
}

TEST(StillLoss, IsThatOfLossesWithinATwoThousandth) {
  for (const double change : {1.0019, 0.9981}) {
    StillLoss still;
    EXPECT_FALSE(still.add(kMargin));
    EXPECT_EQ(reports(still, change * kMargin, StillLoss::kSteps - 1), 1) << change;
  }
  for (const double change : {1.0021, 0.9979}) {
    StillLoss still;
    EXPECT_FALSE(still.add(kMargin));
    EXPECT_EQ(reports(still, change * kMargin, StillLoss::kSteps - 1), 0) << change;
  }
  StillLoss drifting;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(drifting.add(kMargin * (1 + 1e-4 * i))) << i;
}

// A loss of 0 has nothing left to learn, and one that is no number ends the run otherwise.
TEST(StillLoss, IsNeitherZeroNorNan) {
  for (const double loss : {0.0, std::numeric_limits<double>::quiet_NaN()}) {
    StillLoss still;
    EXPECT_EQ(reports(still, loss, 2 * StillLoss::kSteps), 0);
    EXPECT_EQ(reports(still, kMargin, StillLoss::kSteps), 1) << "after " << loss;
  }
}

// The pictures of all four classes are equal and so have one embedding; the loss is the margin.
class StillLossRun : public TrainProgram {};

TEST_F(StillLossRun, SaysOnceThatTheLossStaysAtTheMargin) {
  for (int c = 0; c < 4; ++c) {
    for (int i = 0; i < 2; ++i) folder_.picture(fmt::format("same/c{}/{}.png", c, i), 1);
  }
  const Finished done =
      run(command("run",
                  {"--data", "folder:" + in("same"), "--test-data", "none", "--batch", "4",
                   "--per-class", "2", "--augment", "none", "--loss", "triplet_bh"},
                  51));
  EXPECT_EQ(done.code, 0) << done.err;
  const std::string words = "the loss has been 0.3000 for 100 batches on end";
  EXPECT_TRUE(holds(done.err, "step 100: " + words));
  EXPECT_EQ(done.err.find(words), done.err.rfind(words)) << done.err;
}

}  // namespace
}  // namespace rk
