#include "tools/train/run/best_tracker.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

using nlohmann::ordered_json;

class BestTrackerTest : public testing::Test {
 protected:
  BestTrackerTest() {
    settings_.monitor = "map_at_r";
    settings_.patience = 2;
  }

  TrainSettings settings_;
  RunState run_;
};

TEST_F(BestTrackerTest, PatienceEndsWithTheEpochsThatAreNoBetter) {
  BestTracker best(settings_, true);
  EXPECT_TRUE(best.take(run_, {{"map_at_r", 0.5}, {"recall_at_1", 0.1}}));
  EXPECT_TRUE(best.compared());
  EXPECT_FALSE(best.take(run_, {{"map_at_r", 0.5}, {"recall_at_1", 0.2}}));
  EXPECT_FALSE(best.out_of_patience(run_));
  EXPECT_FALSE(best.take(run_, {{"map_at_r", 0.4}}));
  EXPECT_TRUE(best.out_of_patience(run_));
  EXPECT_EQ(run_.best, 0.5);
  settings_.patience = 0;  // none
  EXPECT_FALSE(best.out_of_patience(run_));
}

TEST_F(BestTrackerTest, TheNewestIsTheBestUntilOneHasAValue) {
  BestTracker best(settings_, true);
  EXPECT_TRUE(best.take(run_, {{"map_at_r", nullptr}}));
  EXPECT_TRUE(best.take(run_, ordered_json::object()));
  EXPECT_FALSE(best.compared());
  EXPECT_TRUE(best.take(run_, {{"map_at_r", 0.0}}));
  EXPECT_FALSE(best.take(run_, {{"map_at_r", nullptr}}));
  EXPECT_EQ(run_.since_best, 0);  // what has no value is not counted
}

TEST_F(BestTrackerTest, WithNothingHeldOutEveryEpochIsTheBest) {
  BestTracker best(settings_, false);
  for (run_.since_best = 0; run_.since_best < 4; ++run_.since_best) {
    EXPECT_TRUE(best.take(run_, ordered_json::object()));
    EXPECT_FALSE(best.out_of_patience(run_));
  }
}

TEST_F(BestTrackerTest, BestFileIsThatOfTheEpochLastWritten) {
  BestTracker best(settings_, true);
  EXPECT_TRUE(best.take(run_, {{"map_at_r", 0.5}}));
  EXPECT_EQ(best.epoch(), 0);  // may not have been written
  best.wrote(3);
  EXPECT_EQ(best.epoch(), 3);
}

}  // namespace
}  // namespace rk
