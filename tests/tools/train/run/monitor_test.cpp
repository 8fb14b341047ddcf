#include "tools/train/run/monitor.h"

#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"
#include "weights/atomic_file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

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

// Two epochs of a run, as last.h5 has them; best.h5 may be an epoch ahead.
class EpochOfBest : public ::testing::Test {
 protected:
  EpochOfBest() {
    last_.epoch = 2;
    last_.settings = "settings";
    last_.environment = "environment";
    last_.data = "data";
    last_.held_out = "held out";
    last_.history = {"first", "second"};
    settings_.out = folder_.path();
    save("last.h5", last_);
    best_ = last_;
    best_.epoch = 3;
    best_.history.push_back("third");
  }

  void save(const std::string& name, const RunState& run) const {
    CheckpointWriter writer(ModelDescription(), run);
    write_atomic(folder_.in(name), writer.finish());
  }
  // Of a run that goes on from last.h5 as `run`, beside best_; what is said is in said_.
  std::int64_t epoch(const RunState& run) {
    save("best.h5", best_);
    said_.clear();
    return epoch_of_best(run, Checkpoint(folder_.in("last.h5")), settings_, true,
                         [&](const std::string& line) { said_ = line; });
  }

  const TemporaryFolder folder_;
  TrainSettings settings_;
  RunState last_{}, best_{};
  std::string said_;
};

TEST_F(EpochOfBest, AheadItCountsIfTheRunGoesOnAlike) {
  EXPECT_EQ(epoch(last_), 3);
  EXPECT_EQ(said_, "");
  const std::function<void(RunState&)> changes[] = {
      [](RunState& run) { run.settings = "others"; },
      [](RunState& run) { run.environment = "another"; },
      [](RunState& run) { run.data = "other data"; },
      [](RunState& run) { run.held_out = "others"; },
  };
  for (const auto& change : changes) {
    RunState run = last_;
    change(run);
    EXPECT_EQ(epoch(run), 0);
    EXPECT_TRUE(holds(said_, "best.h5: is of epoch 3, which this run makes anew, and not as it"));
  }
}

TEST_F(EpochOfBest, OfAnEpochThatIsOverItCountsHoweverTheRunGoesOn) {
  best_.epoch = 2;
  best_.history.pop_back();
  RunState run = last_;
  run.settings = "others";
  EXPECT_EQ(epoch(run), 2);
  best_.epoch = 1;
  best_.history.pop_back();
  EXPECT_EQ(epoch(run), 1);
  EXPECT_EQ(said_, "");
}

TEST_F(EpochOfBest, WithAnotherHistoryItIsAnotherRuns) {
  best_.history[1] = "another";
  EXPECT_EQ(epoch(last_), 0);
  EXPECT_TRUE(holds(said_, "best.h5: is another run's; it is written again after an epoch whose"));
}

}  // namespace
}  // namespace rk
