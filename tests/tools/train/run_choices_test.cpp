// What a run chooses and computes, seen from outside: on which classes its epochs are compared,
// which epoch becomes best.h5, and with which statistics a picture is embedded.
#include "engine/system/usable_cores.h"
#include "retrieval/files/embeddings_file.h"
#include "tests/support/words.h"
#include "tests/tools/train/train_program.h"
#include "weights/checkpoint.h"
#include "weights/hdf5/file.h"

#include <cmath>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class RunChoices : public TrainProgram {
 protected:
  json eval(const std::string& checkpoint, const std::string& split, const Words& more = {}) const {
    const Finished done =
        run(evaluating(checkpoint, joined({"--split", split, "--json", in("eval.json")}, more)));
    EXPECT_EQ(done.code, 0) << done.err;
    return json::parse(file_text(in("eval.json")));
  }
};

// With three splits the best epoch is chosen on val; among equal epochs it is the first.
TEST_F(RunChoices, TheBestEpochIsThatOfTheValidationSplit) {
  folder_.classes("pics/train/c", 8, 8);
  folder_.classes("pics/val/v", 5, 7);
  folder_.classes("pics/test/t", 9, 6);
  const Finished done =
      run(on_pictures("run", {"--epochs", "6", "--lr", "0.05", "--json", in("r.json")}, 1));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, "held out: split val: 35 images of 5 other classes"));
  const std::vector<json> lines = metrics("run");
  ASSERT_EQ(lines.size(), 7U);
  std::size_t best = 1;
  for (std::size_t epoch = 2; epoch < lines.size(); ++epoch) {
    if (lines[epoch]["map_at_r"] > lines[best]["map_at_r"]) best = epoch;
  }
  const Checkpoint kept(in("run/best.h5"));
  EXPECT_EQ(kept.run().epoch, best);
  EXPECT_TRUE(holds(done.out, fmt::format("best.h5: of epoch {}, R@1 {:.4f}, MAP@R {:.4f}\n", best,
                                          lines[best]["recall_at_1"].get<double>(),
                                          lines[best]["map_at_r"].get<double>())));
  EXPECT_EQ(kept.run().best, lines[best]["map_at_r"].get<double>());
  EXPECT_EQ(json::parse(file_text(in("r.json")))["best"]["map_at_r"], lines[best]["map_at_r"]);
  // eval must find the recorded values on val, with these parameters.
  EXPECT_EQ(eval("run/best.h5", "val")["metrics"]["map_at_r"], lines[best]["map_at_r"]);
  EXPECT_EQ(eval("run/last.h5", "val")["metrics"]["map_at_r"], lines[6]["map_at_r"]);
  EXPECT_NE(eval("run/last.h5", "test")["metrics"]["map_at_r"], lines[6]["map_at_r"]);
  EXPECT_EQ(Checkpoint(in("run/last.h5")).run().epoch, 6);
}

// Decoding four million pixels takes longer than a step on 16 x 16 of them.
TEST_F(RunChoices, ARunThatWaitsForPicturesSaysWhatWouldHelp) {
  for (std::uint64_t i = 0; i < 4; ++i) {
    for (const char* of : {"a", "b", "c", "d"}) {
      folder_.picture(fmt::format("pics/train/{}/{}.png", of, i), i, 2000, 2000);
    }
  }
  const Words waits = on_pictures("run", {"--epochs", "1", "--test-data", "none"}, 5);
  const Finished done = run(waits);
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, " % of the time no pictures were ready to train on; "));
  EXPECT_TRUE(holds(done.err, "a larger --cache (now 0 MiB) or smaller files would help"));
  const bool others = usable_cores() > 1;
  EXPECT_EQ(done.err.find("more --workers (now 1), ") != std::string::npos, others) << done.err;
  const Finished kept =
      run(with_flags(waits, {"--cache", "1000", "--epochs", "3", "--out", in("kept")}));
  ASSERT_EQ(kept.code, 0) << kept.err;
  const std::vector<json> lines = metrics("kept");
  EXPECT_LT(lines.back()["waited_for_images"], lines[1]["waited_for_images"]);
}

TEST_F(RunChoices, ASetOfItsOwnIsHeldOutInsteadOfTheDatas) {
  folder_.classes("others/o", 4, 5);
  const Finished done = run(on_pictures(
      "run", {"--epochs", "1", "--test-data", "folder:" + in("others") + ",splits=none"}, 1));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, "20 images of 4 other classes; the best epoch"));
  const Finished none = run(on_pictures("none", {"--epochs", "2", "--test-data", "none"}, 1));
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_FALSE(holds(none.err, "held out"));
  EXPECT_FALSE(metrics("none").back().contains("map_at_r"));
  EXPECT_EQ(Checkpoint(in("none/best.h5")).run().epoch, 2);  // nothing to compare: the last
}

// Frozen statistics must stay those of the weights to the last bit, and the same steps with batch
// statistics must lead elsewhere.
TEST_F(RunChoices, FrozenStatisticsStayAndBatchStatisticsMove) {
  ASSERT_EQ(run(on_pictures("first", {"--epochs", "1"}, 2)).code, 0);
  const auto go_on = [&](const std::string& out, const Words& more) {
    const Finished done =
        run(on_pictures(out, joined({"--epochs", "1", "--weights", in("first/last.h5")}, more), 2));
    EXPECT_EQ(done.code, 0) << done.err;
  };
  go_on("frozen", {"--bn", "frozen"});
  go_on("auto", {});
  go_on("train", {"--bn", "train"});
  for (const char* statistics : {".running_mean", ".running_var"}) {
    const std::vector<float> before = weights("first/last.h5", statistics);
    EXPECT_EQ(weights("frozen/last.h5", statistics), before);
    EXPECT_EQ(weights("auto/last.h5", statistics), before);
    EXPECT_NE(weights("train/last.h5", statistics), before);
  }
  EXPECT_EQ(weights("auto/last.h5", ".weight"), weights("frozen/last.h5", ".weight"));
  EXPECT_NE(weights("train/last.h5", ".weight"), weights("frozen/last.h5", ".weight"));
}

// All parameters up to the named stage must stay, even with weight decay; those after it must
// change.
TEST_F(RunChoices, FrozenStagesKeepTheirWeights) {
  ASSERT_EQ(run(on_pictures("first", {"--epochs", "1"}, 2)).code, 0);
  const Finished done = run(on_pictures("next",
                                        {"--epochs", "1", "--weights", in("first/last.h5"),
                                         "--freeze", "layer1", "--weight-decay", "0.1"},
                                        2));
  ASSERT_EQ(done.code, 0) << done.err;
  const Hdf5Reader before(in("first/last.h5")), after(in("next/last.h5"));
  int kept = 0, moved = 0;
  for (const std::string& path : before.datasets("/weights")) {
    if (!path.ends_with(".weight") && !path.ends_with(".bias")) continue;
    const std::string name = path.substr(std::string("/weights/").size());
    const bool frozen =
        name.starts_with("conv1.") || name.starts_with("bn1.") || name.starts_with("layer1.");
    EXPECT_EQ(before.read<float>(path) == after.read<float>(path), frozen) << name;
    ++(frozen ? kept : moved);
  }
  EXPECT_EQ(kept, 3 + 18);
  EXPECT_GT(moved, 40);
}

// Evaluation uses the stored statistics, so a picture's embedding must not depend on its batch.
TEST_F(RunChoices, APictureIsEmbeddedAloneAsAmongOthers) {
  ASSERT_EQ(run(on_pictures("run", {"--epochs", "1"}, 2)).code, 0);
  for (const char* batch : {"1", "64"}) {
    eval("run/last.h5", "test",
         {"--batch", batch, "--save-embeddings", in(std::string(batch) + ".h5")});
  }
  const EmbeddingSet alone = read_embeddings(in("1.h5")), together = read_embeddings(in("64.h5"));
  ASSERT_EQ(alone.embeddings.size(), 64U * 16U);
  ASSERT_EQ(alone.embeddings.size(), together.embeddings.size());
  double apart = 0;
  for (std::size_t i = 0; i < alone.embeddings.size(); ++i) {
    // Rounding: sums in another order; the rows have length 1.
    EXPECT_NEAR(alone.embeddings[i], together.embeddings[i], 1e-5) << i;
    apart = std::max<double>(apart, std::abs(alone.embeddings[i] - alone.embeddings[i % 16]));
  }
  EXPECT_GT(apart, 1e-3) << "equal pictures would show nothing";
  // Nor may it in the evaluation during a run.
  ASSERT_EQ(run(on_pictures("again", {"--epochs", "1", "--eval-batch", "3"}, 2)).code, 0);
  EXPECT_NEAR(metrics("again")[1]["map_at_r"].get<double>(),
              metrics("run")[1]["map_at_r"].get<double>(), 0.02);
}

// Learning rates, decay, seeds and the like must change the parameters that they are said to, and
// no others.
TEST_F(RunChoices, FlagsReachTheParameters) {
  const Words one = {"--epochs", "1"};
  const auto train = [&](const std::string& out, const Words& more) {
    const Finished done = run(on_pictures(out, joined(one, more), 1));
    EXPECT_EQ(done.code, 0) << done.err;
  };
  train("plain", {});
  const auto differs = [&](const std::string& out, const std::string& ending) {
    return weights(out + "/last.h5", ending) != weights("plain/last.h5", ending);
  };
  const std::string network = "conv1.weight", embedding = "embedding.weight";
  const std::tuple<std::string, Words, bool, bool> cases[] = {
      {"same", {}, false, false},
      {"seed", {"--seed", "1"}, true, true},
      {"lr", {"--lr", "0.1"}, true, true},
      {"embedding-rate", {"--embedding-rate", "7"}, false, true},
      {"weight-decay", {"--weight-decay", "0.1"}, true, true},
      {"clip-norm", {"--clip-norm", "1e-3"}, true, true},
      {"warmup", {"--warmup", "1"}, true, true},
      {"optimizer", {"--optimizer", "adam"}, true, true},
      {"augment", {"--augment", "none"}, true, true},
      {"embedding-start", {"--embedding-start", "orthogonal"}, true, true},
      {"loss", {"--loss", "fastap"}, true, true},
      {"input", {"--input-mean", "0.5"}, true, true},
      {"resize", {"--resize", "40"}, true, true}};
  for (const auto& [name, flags, moves_network, moves_embedding] : cases) {
    train(name, flags);
    EXPECT_EQ(differs(name, network), moves_network) << name;
    EXPECT_EQ(differs(name, embedding), moves_embedding) << name;
    fs::remove_all(in(name));
  }
  // Learning rates that change during a run: one step at the first rate, one at the second.
  Words two = {"--epochs", "2"};
  const auto second = [&](const std::string& out, const Words& more) {
    EXPECT_EQ(run(on_pictures(out, joined(two, more), 1)).code, 0);
    return weights(out + "/last.h5", network);
  };
  const std::vector<float> constant = second("constant", {});
  const Words ways[] = {{"--schedule", "step", "--drop-every", "1"},
                        {"--schedule", "milestones", "--drop-at", "1"},
                        {"--schedule", "cosine"},
                        {"--schedule", "cosine", "--lr-floor", "0.5"},
                        {"--schedule", "step", "--drop-every", "1", "--drop-factor", "0.25"},
                        {"--momentum", "0.9"},
                        {"--momentum", "0.9", "--nesterov"}};
  std::vector<std::vector<float>> ends = {constant};
  for (std::size_t i = 0; i < std::size(ways); ++i) {
    ends.push_back(second(fmt::format("way{}", i), ways[i]));
    fs::remove_all(in(fmt::format("way{}", i)));
  }
  EXPECT_EQ(ends[1], ends[2]) << "a tenth from the second epoch on, both";
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (k == 1 && i == 2) continue;
      EXPECT_NE(ends[i], ends[k]) << i << k;
    }
  }
}

}  // namespace
}  // namespace rk
