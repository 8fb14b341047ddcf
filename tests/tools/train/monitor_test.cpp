#include "tools/train/monitor.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rk {
namespace {

TEST(TakeValue, CountsTheValuesSinceTheBest) {
  RunState run;
  const auto expect = [&](double value, bool best, double so_far, std::int64_t since) {
    EXPECT_EQ(take_value(run, value, false), best) << value;
    EXPECT_EQ(run.best, so_far) << value;
    EXPECT_EQ(run.since_best, since) << value;
  };
  EXPECT_TRUE(take_value(run, -5, true));  // the first is the best, however low
  expect(-6, false, -5, 1);
  expect(-5, false, -5, 2);
  expect(0.25, true, 0.25, 0);
  expect(0.25, false, 0.25, 1);
  expect(0.5, true, 0.5, 0);
}

TEST(MetricOf, IsNothingWhereItIsUndefined) {
  const nlohmann::ordered_json entry = {{"map", 0.0}, {"jsd", nullptr}};
  EXPECT_EQ(metric_of(entry, "map"), 0.0);
  EXPECT_FALSE(metric_of(entry, "jsd"));
  EXPECT_FALSE(metric_of(entry, "roc_auc"));
}

}  // namespace
}  // namespace rk
