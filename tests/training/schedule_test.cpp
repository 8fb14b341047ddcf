#include "training/schedule.h"

#include "engine/base/error.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rk {
namespace {

TEST(Schedule, Constant) {
  const Schedule schedule({.rate = 3e-4});
  EXPECT_EQ(schedule.rate(0), 3e-4);
  EXPECT_EQ(schedule.rate(1'000'000), 3e-4);
}

TEST(Schedule, StepDropsAtEveryMultiple) {
  const Schedule schedule(
      {.kind = ScheduleKind::kStep, .rate = 1e-4, .factor = 0.9, .every = 10000});
  EXPECT_DOUBLE_EQ(schedule.rate(9999), 1e-4);
  EXPECT_DOUBLE_EQ(schedule.rate(10000), 0.9e-4);
  EXPECT_DOUBLE_EQ(schedule.rate(29999), 0.81e-4);
  EXPECT_DOUBLE_EQ(schedule.rate(30000), 0.729e-4);
}

TEST(Schedule, MilestonesDropWhereTheyStand) {
  const Schedule schedule({.kind = ScheduleKind::kMilestones,
                           .rate = 1.0,
                           .factor = 0.3,
                           .milestones = {120, 220, 250}});
  EXPECT_DOUBLE_EQ(schedule.rate(119), 1.0);
  EXPECT_DOUBLE_EQ(schedule.rate(120), 0.3);
  EXPECT_DOUBLE_EQ(schedule.rate(249), 0.09);
  EXPECT_DOUBLE_EQ(schedule.rate(250), 0.027);
}

TEST(Schedule, CosineGoesFromRateToFloor) {
  const Schedule schedule({.kind = ScheduleKind::kCosine, .rate = 2.0, .total = 100, .floor = 0.1});
  EXPECT_DOUBLE_EQ(schedule.rate(0), 2.0);
  EXPECT_NEAR(schedule.rate(50), 2.0 * 0.55, 1e-12);
  EXPECT_NEAR(schedule.rate(25), 2.0 * (0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5))), 1e-12);
  EXPECT_NEAR(schedule.rate(100), 0.2, 1e-12);
  EXPECT_NEAR(schedule.rate(560), 0.2, 1e-12);  // past the end: the floor, not another wave
}

TEST(Schedule, WarmUpIsLinearAndThenGone) {
  const Schedule schedule({.rate = 1.0, .warmup = 4});
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.rate(1), 0.4);
  EXPECT_DOUBLE_EQ(schedule.rate(3), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate(4), 1.0);
  EXPECT_DOUBLE_EQ(schedule.rate(5), 1.0);
  // The cosine starts where the warm-up ends.
  const Schedule cosine({.kind = ScheduleKind::kCosine, .rate = 1.0, .warmup = 10, .total = 110});
  EXPECT_DOUBLE_EQ(cosine.rate(10), 1.0);
  EXPECT_NEAR(cosine.rate(60), 0.5, 1e-12);
}

TEST(Schedule, RefusesWhatCannotBeMeant) {
  const auto make = [](ScheduleParams params) { Schedule schedule(std::move(params)); };
  EXPECT_THROW(make({.rate = 0}), UsageError);
  EXPECT_THROW(make({.rate = std::nan("")}), UsageError);
  EXPECT_THROW(make({.warmup = -1}), UsageError);
  EXPECT_THROW(make({.kind = ScheduleKind::kStep, .every = 0}), UsageError);
  EXPECT_THROW(make({.kind = ScheduleKind::kMilestones, .milestones = {5, 3}}), UsageError);
  EXPECT_THROW(make({.kind = ScheduleKind::kCosine, .warmup = 10, .total = 10}), UsageError);
  EXPECT_THROW(make({.kind = ScheduleKind::kCosine, .total = 10, .floor = 2}), UsageError);
}

}  // namespace
}  // namespace rk
