#include "tools/eval/learning_record.h"

#include "tests/support/temporary_folder.h"
#include "weights/atomic_file.h"
#include "weights/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rk {
namespace {

const std::vector<std::string> kHistory = {
    R"({"epoch":0,"recall_at_1":0.25})",
    R"({"epoch":1,"loss":1.5,"train":{"map_at_r":0.75},"map_at_r":0.5,"jsd":0.125})"};

class LearningRecords : public testing::Test {
 protected:
  // Of a checkpoint of two epochs, beside which `record` is what metrics.jsonl holds.
  std::optional<LearningRecord> read(const std::string& record,
                                     const std::vector<std::string>& history = kHistory,
                                     std::int64_t batch = 0) const {
    ModelDescription model;
    model.arch = "resnet20";
    RunState run;
    run.step = 9;
    run.epoch = 1;
    run.batch = batch;
    run.settings = "{}";
    run.history = history;
    CheckpointWriter writer(model, run);
    const float weight = 1;
    writer.weight("conv1.weight", {1, 1, 1, 1}, &weight);
    const std::string path = folder_.in("best.h5");
    write_atomic(path, writer.finish());
    folder_.write("metrics.jsonl", record);
    return read_learning_record(Checkpoint(path));
  }
  std::vector<std::int64_t> epochs(const std::string& record) const {
    std::vector<std::int64_t> out;
    const std::optional<LearningRecord> all = read(record);
    if (!all) return out;
    for (const RecordedEpoch& each : all->epochs) out.push_back(each.epoch);
    return out;
  }

  const TemporaryFolder folder_{};
  // As a run writes them: the history's lines, and what the epoch took.
  const std::string first_ = R"({"epoch":0,"recall_at_1":0.25,"eval_seconds":2.5})";
  const std::string second_ =
      kHistory[1].substr(0, kHistory[1].size() - 1) + R"(,"eval_seconds":2.5})";
};

TEST_F(LearningRecords, HoldWhatTheEpochsSay) {
  const std::optional<LearningRecord> record = read(first_ + "\n" + second_ + "\n");
  ASSERT_TRUE(record);
  ASSERT_EQ(record->epochs.size(), 2U);
  EXPECT_EQ(record->epochs[0].held_out.recall_at_1, 0.25);
  EXPECT_TRUE(std::isnan(record->epochs[0].loss));
  EXPECT_TRUE(std::isnan(record->epochs[0].training.map_at_r));
  EXPECT_EQ(record->epochs[1].loss, 1.5);
  EXPECT_EQ(record->epochs[1].held_out.map_at_r, 0.5);
  EXPECT_EQ(record->epochs[1].held_out.jsd, 0.125);
  EXPECT_EQ(record->epochs[1].training.map_at_r, 0.75);
  EXPECT_EQ(record->evaluated, 1);
  EXPECT_EQ(record->held_out, "");
  // A network of the middle of an epoch is none of those that were compared.
  EXPECT_EQ(read("", kHistory, 3)->evaluated, -1);
  EXPECT_FALSE(read(first_, {}));
}

// Later epochs are in the file alone, and only in that of the same run.
TEST_F(LearningRecords, GoOnInTheFileOfTheirRun) {
  using Epochs = std::vector<std::int64_t>;
  const std::string third = R"({"epoch":2,"map_at_r":0.75})";
  EXPECT_EQ(epochs(first_ + "\n" + second_ + "\n" + third + "\n"), (Epochs{0, 1, 2}));
  EXPECT_EQ(epochs(""), (Epochs{0, 1}));
  EXPECT_EQ(epochs(first_ + "\n"), (Epochs{0, 1}));
  const std::string others = R"({"epoch":5,"loss":1.5})";
  EXPECT_EQ(epochs(first_ + "\n" + others + "\n" + third + "\n"), (Epochs{0, 1}));
  for (const char* damaged : {"[]", R"({"epoch":1e300})", R"({"epoch":-1})", R"({"loss":1.5})"}) {
    EXPECT_EQ(epochs(first_ + "\n" + second_ + "\n" + damaged + "\n" + third + "\n"),
              (Epochs{0, 1}))
        << damaged;
  }
}

TEST_F(LearningRecords, SayWhatWasHeldOutAtLast) {
  folder_.write("run.json", R"({"starts": [{"held_out": {"part": "split test"}},
                                           {"held_out": {"part": "split val"}}]})");
  EXPECT_EQ(read("")->held_out, "split val");
  for (const char* other : {R"({"starts": []})", R"({"starts": {}})", R"({"starts": {"a": 1}})",
                            R"({"starts": 7})", R"({"starts": [7]})", "[]", "no JSON"}) {
    folder_.write("run.json", other);
    EXPECT_EQ(read("")->held_out, "") << other;
  }
}

}  // namespace
}  // namespace rk
