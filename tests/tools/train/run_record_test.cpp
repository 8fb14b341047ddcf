// What a run records of its epochs, and what follows from that: the best epoch, and when to stop.
#include "engine/base/integers.h"
#include "tests/support/words.h"
#include "tests/tools/train/train_program.h"
#include "tools/train/run/monitor.h"
#include "weights/checkpoint.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

namespace rk {
namespace {

using nlohmann::json;

class RunRecord : public TrainProgram {
 protected:
  static const std::set<std::string>& times() {
    static const std::set<std::string> all = {"seconds", "images_per_second", "eval_seconds",
                                              "waited_for_images", "timed_batches"};
    return all;
  }
  // The lines of metrics.jsonl without times, which differ from run to run.
  std::vector<json> timeless(const std::string& out) const {
    std::vector<json> lines = metrics(out);
    for (json& line : lines) {
      for (const std::string& time : times()) line.erase(time);
    }
    return lines;
  }
  std::vector<std::vector<std::string>> csv(const std::string& out) const {
    std::vector<std::vector<std::string>> rows;
    std::istringstream text(file_text(in(out + "/metrics.csv")));
    for (std::string line; std::getline(text, line);) {
      auto& row = rows.emplace_back();
      std::istringstream fields(line + ",");
      for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    }
    return rows;
  }
  std::vector<std::vector<std::string>> timeless_csv(const std::string& out) const {
    std::vector<std::vector<std::string>> rows = csv(out);
    const std::vector<std::string> names = rows.at(0);
    for (auto& row : rows) {
      std::vector<std::string> kept;
      for (std::size_t c = 0; c < names.size(); ++c) {
        if (!times().contains(names[c])) kept.push_back(row[c]);
      }
      row = kept;
    }
    return rows;
  }
  // A run whose weights do not change, so that every epoch has the metrics of the first.
  Words standing(const std::string& out, const Words& more) const {
    return on_pictures(out, joined({"--bn", "frozen", "--lr", "1e-30"}, more), 1);
  }
};

// --eval-train 5000 takes all six classes, so `eval` must compute the same metrics.
TEST_F(RunRecord, TrainingClassesAreEvaluatedBesideTheHeldOutOnes) {
  folder_.classes("pics/train/c", 6, 7);
  folder_.classes("pics/test/t", 8, 8);
  const Finished done = run(on_pictures("run", {"--epochs", "1", "--eval-train", "5000"}, 2));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, "evaluated beside them each epoch: 42 images of 6 classes"));
  EXPECT_TRUE(holds(done.out, " (of images trained on: "));
  const std::vector<json> lines = metrics("run");
  ASSERT_EQ(lines.size(), 2U);
  for (const char* split : {"train", "test"}) {
    const Finished eval =
        run(evaluating("run/last.h5", {"--split", split, "--json", in("eval.json")}));
    ASSERT_EQ(eval.code, 0) << eval.err;
    const json said = json::parse(file_text(in("eval.json")))["metrics"];
    const json& recorded = std::string(split) == "train" ? lines[1]["train"] : lines[1];
    for (const char* key : {"recall_at_1", "map_at_r", "jsd", "pos_mean", "num_queries"}) {
      EXPECT_EQ(recorded[key], said[key]) << split << " " << key;
    }
  }
  EXPECT_NE(lines[1]["train"]["map_at_r"], lines[1]["map_at_r"]);
  EXPECT_TRUE(lines[0].contains("train"));
  for (const json& line : lines) {
    for (const json& of : {line, line["train"]}) {
      const json& counts = of["similarities"];
      std::int64_t pairs[2] = {0, 0};
      for (const json& n : counts["positives"]) pairs[0] += n.get<std::int64_t>();
      for (const json& n : counts["negatives"]) pairs[1] += n.get<std::int64_t>();
      EXPECT_EQ(pairs[0], of["num_pairs_positive"]);
      EXPECT_EQ(pairs[1], of["num_pairs_negative"]);
      EXPECT_EQ(counts["positives"].size(), counts["negatives"].size());
      EXPECT_NE(counts["positives"].front().get<int>() + counts["negatives"].front().get<int>(), 0);
    }
  }

  // Whole classes are taken until there are at least as many images as asked for; 0 takes none.
  ASSERT_EQ(run(on_pictures("some", {"--epochs", "1", "--eval-train", "20"}, 1)).code, 0);
  EXPECT_EQ(metrics("some")[1]["train"]["num_queries"], 21);
  EXPECT_EQ(metrics("some")[0]["train"]["num_queries_valid"], 21);
  ASSERT_EQ(run(on_pictures("none", {"--epochs", "1", "--eval-train", "0"}, 1)).code, 0);
  EXPECT_FALSE(metrics("none")[1].contains("train"));
  // More than are held out, only if all are asked for.
  const Words few = {"--test-data", "folder:" + in("few"), "--epochs", "1"};
  folder_.classes("few/t", 2, 4);
  ASSERT_EQ(run(on_pictures("as_many", with_flags(few, {"--eval-train", "5000"}), 1)).code, 0);
  EXPECT_LT(metrics("as_many")[1]["train"]["num_queries"], 42);
  ASSERT_EQ(run(on_pictures("all", with_flags(few, {"--eval-train", "-1"}), 1)).code, 0);
  EXPECT_EQ(metrics("all")[1]["train"]["num_queries"], 42);
  // Evaluating training classes must not change the training.
  const auto weights_of = [&](const std::string& out) {
    return Checkpoint(in(out + "/last.h5")).network();
  };
  EXPECT_EQ(weights_of("some"), weights_of("none"));
}

// A run that is stopped in the middle of an epoch and between two must leave the files, lines and
// table of an undisturbed run.
TEST_F(RunRecord, OfAResumedRunEqualsThatOfOneThatWasNotStopped) {
  constexpr int kBatches = 6;
  const Words flags = {"--eval-train", "40", "--log", "csv", "--monitor", "jsd", "--patience", "9"};
  const Words words = on_pictures("straight", flags, kBatches);
  ASSERT_EQ(run(words).code, 0);
  // Training pictures are opened once when the run begins (64), for its evaluation (40), and by
  // each batch (16).
  const Finished stopped =
      run(with_faults(on_pictures("stopped", flags, kBatches),
                      fmt::format("open,{},1,s15,/pics/train/", 64 + 40 + 16 * 4)));
  ASSERT_EQ(stopped.code, 143) << stopped.err;
  ASSERT_GT(Checkpoint(in("stopped/last.h5")).run().batch, 0);
  const Finished done = resume("stopped");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(same_file("straight/last.h5", "stopped/last.h5"));
  EXPECT_TRUE(same_file("straight/best.h5", "stopped/best.h5"));
  EXPECT_EQ(timeless("straight"), timeless("stopped"));
  EXPECT_EQ(timeless_csv("straight"), timeless_csv("stopped"));
}

TEST_F(RunRecord, TheMonitoredMetricChoosesTheBestEpoch) {
  for (const char* monitor : {"jsd", "roc_auc", "recall_at_1"}) {
    const std::string out = monitor;
    const Finished done = run(on_pictures(
        out, {"--epochs", "4", "--lr", "0.05", "--monitor", monitor, "--json", in("r.json")}, 1));
    ASSERT_EQ(done.code, 0) << done.err;
    const std::vector<json> lines = metrics(out);
    std::size_t best = 1;
    for (std::size_t epoch = 2; epoch < lines.size(); ++epoch) {
      if (lines[epoch][monitor] > lines[best][monitor]) best = epoch;
    }
    const RunState kept = Checkpoint(in(out + "/best.h5")).run();
    EXPECT_EQ(kept.epoch, best) << monitor;
    EXPECT_EQ(kept.best, lines[best][monitor].get<double>()) << monitor;
    EXPECT_EQ(Checkpoint(in(out + "/last.h5")).run().since_best, 4 - kept.epoch) << monitor;
    EXPECT_EQ(json::parse(file_text(in("r.json")))["best"], json({{monitor, kept.best}}));
    // The last lines must show the monitored metric besides the two that are always shown.
    const double start = lines[0][monitor].get<double>();
    const bool better = kept.best > start;
    const auto both = [&](const char* name, const char* format) {
      return fmt::format(fmt::runtime(format), lines[0][name].get<double>(),
                         lines[4][name].get<double>()) +
             (better && out == name ? fmt::format(" (best {:.4f})", kept.best) : "");
    };
    std::string summary =
        "\nheld-out classes: " + both("recall_at_1", "R@1 {:.4f} at the start, {:.4f} trained") +
        both("map_at_r", "; MAP@R {:.4f}, {:.4f}");
    if (out != "recall_at_1") summary += "; " + out + both(monitor, " {:.4f}, {:.4f}");
    EXPECT_TRUE(holds(done.out, summary + "\n"));
    EXPECT_EQ(holds(done.out, "no epoch had a higher " + out + " than the start"), !better);
  }
  const Finished unknown = run(on_pictures("x", {"--monitor", "recal_at_1"}, 1));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(holds(unknown.err, "--monitor: recal_at_1 is none of its values"));
  EXPECT_TRUE(holds(unknown.err, "recall_at_1"));

  // Resumed with another metric, the best so far must be taken from the recorded lines: not from
  // that of the start, and not from epochs without a value.
  const Checkpoint by_jsd(in("jsd/last.h5"));
  RunState weighed = by_jsd.run();
  weighed.history = {R"({"epoch": 0, "map_at_r": 0.9})", R"({"epoch": 1, "map_at_r": null})",
                     R"({"epoch": 2, "map_at_r": 0.2})", R"({"epoch": 3, "map_at_r": 0.4})",
                     R"({"epoch": 4, "map_at_r": 0.3})"};
  TrainSettings settings;
  settings.monitor = "map_at_r";
  EXPECT_TRUE(compare_again(weighed, by_jsd, settings, true, [](const std::string&) {}));
  EXPECT_EQ(weighed.best, 0.4);
  EXPECT_EQ(weighed.since_best, 1);
  // Where no epoch has a value, nothing is left of the metric before, nor of its patience.
  weighed.history.resize(2);
  weighed.since_best = 7;
  EXPECT_FALSE(compare_again(weighed, by_jsd, settings, true, [](const std::string&) {}));
  EXPECT_EQ(weighed.best, RunState{}.best);
  EXPECT_EQ(weighed.since_best, 0);
  const Finished other = resume("jsd", {"--epochs", "5", "--monitor", "map_at_r"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(holds(other.err, "monitor: \"jsd\" in the checkpoint, \"map_at_r\" from now on"));
  double best = -1;
  const std::vector<json> lines = metrics("jsd");
  for (std::size_t epoch = 1; epoch < 5; ++epoch) {
    best = std::max(best, lines[epoch]["map_at_r"].get<double>());
  }
  EXPECT_TRUE(holds(other.err, fmt::format("until an epoch's map_at_r is above {:.4f}", best)));
  best = std::max(best, lines[5]["map_at_r"].get<double>());
  EXPECT_EQ(Checkpoint(in("jsd/last.h5")).run().best, best);
}

// A best.h5 that was deleted or replaced must be reported, and the end must not name it.
TEST_F(RunRecord, ABestThatIsLostIsSaid) {
  ASSERT_EQ(run(on_pictures("other", {"--epochs", "1", "--seed", "77"}, 1)).code, 0);
  ASSERT_EQ(run(on_pictures("begun", {"--epochs", "1", "--lr", "0.05"}, 1)).code, 0);
  const Words as_it_is = {"--epochs", "2", "--lr", "1e-30", "--bn", "frozen"};
  const std::pair<const char*, std::function<void(const std::string&)>> losses[] = {
      {"is missing", [](const std::string& best) { std::filesystem::remove(best); }},
      {"does not end with a checksum", [](const std::string& best) { std::ofstream(best) << "x"; }},
      {"is another run's", [&](const std::string& best) {
         std::filesystem::copy_file(in("other/best.h5"), best,
                                    std::filesystem::copy_options::overwrite_existing);
       }}};
  for (const auto& [words, lose] : losses) {
    SCOPED_TRACE(words);
    std::filesystem::remove_all(in("run"));
    std::filesystem::copy(in("begun"), in("run"));
    lose(in("run/best.h5"));
    const Finished done = resume("run", as_it_is);
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_TRUE(holds(done.err, "best.h5: " + std::string(words)));
    EXPECT_TRUE(holds(done.err, fmt::format("it is written again after an epoch whose map_at_r is "
                                            "above {:.4f}, the highest so far",
                                            metrics("run")[1]["map_at_r"].get<double>())));
    EXPECT_FALSE(holds(done.out, "best.h5")) << done.out;
  }
  // If it is intact, the end must say its epoch, the first of two equally good ones.
  const Finished whole = resume("begun", as_it_is);
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_FALSE(holds(whole.err, "written again")) << whole.err;
  EXPECT_TRUE(holds(whole.out, "best.h5: of epoch 1, "));
  EXPECT_TRUE(holds(whole.out, "/begun: best.h5, last.h5"));
}

// Killed after it saved best.h5 of epoch 2 and before last.h5, a run goes on from epoch 1. With the
// same settings it makes that best.h5 again; with others it never will, and must not give it the
// figures of its own epoch 2.
TEST_F(RunRecord, ABestOfAnEpochThatIsMadeAnewIsSaid) {
  const Words rising = {"--epochs", "2", "--lr", "0.05"};
  ASSERT_EQ(run(on_pictures("all", rising, 1)).code, 0);
  std::string monitor;
  for (const char* name : {"map_at_r", "roc_auc", "jsd", "map"}) {
    if (metrics("all")[2][name] > metrics("all")[1][name]) monitor = name;
  }
  ASSERT_FALSE(monitor.empty()) << "no metric has risen";
  const Finished whole = run(on_pictures("run", with_flags(rising, {"--monitor", monitor}), 1));
  ASSERT_EQ(whole.code, 0) << whole.err;
  const std::string best = file_text(in("run/best.h5"));
  std::filesystem::rename(in("run/previous.h5"), in("run/last.h5"));
  std::filesystem::copy(in("run"), in("changed"));
  const Finished same = resume("run");
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_FALSE(holds(same.err, "best.h5: is of")) << same.err;
  EXPECT_TRUE(holds(same.out, "best.h5: of epoch 2, "));
  EXPECT_TRUE(file_text(in("run/best.h5")) == best);
  const Finished changed = resume("changed", {"--lr", "1e-30", "--bn", "frozen"});
  ASSERT_EQ(changed.code, 0) << changed.err;
  EXPECT_TRUE(holds(changed.err, "best.h5: is of epoch 2, which this run makes anew, and not as"));
  EXPECT_FALSE(holds(changed.out, "best.h5")) << changed.out;
}

TEST_F(RunRecord, PatienceEndsARunThatNoLongerImproves) {
  const Finished done = run(standing("run", {"--epochs", "9", "--patience", "2"}));
  ASSERT_EQ(done.code, 0) << done.err;
  // The first epoch is the best; the two after it are only as good.
  EXPECT_EQ(metrics("run").size(), 4U);
  EXPECT_TRUE(holds(done.out,
                    "stopped after epoch 3: map_at_r has not risen for 2 epochs, as --patience 2"));
  EXPECT_EQ(Checkpoint(in("run/best.h5")).run().epoch, 1);
  // A stopped run has nothing left to do, unless more patience is given.
  const std::string last = file_text(in("run/last.h5"));
  const Finished again = resume("run");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(holds(again.out, "stopped after epoch 3"));
  EXPECT_EQ(file_text(in("run/last.h5")), last);
  const Finished less = resume("run", {"--patience", "1", "--lr", "1"});
  EXPECT_TRUE(holds(less.out, "as --patience 1 asks"));
  EXPECT_TRUE(holds(less.err, "--lr: has no effect on a run that is over"));
  EXPECT_FALSE(holds(less.err, "--patience: has no effect")) << less.err;
  ASSERT_EQ(resume("run", {"--patience", "3"}).code, 0);
  EXPECT_EQ(metrics("run").size(), 5U);

  // Patience must count epochs from before an interruption, too.
  ASSERT_EQ(run(standing("parts", {"--epochs", "2", "--patience", "3"})).code, 0);
  ASSERT_EQ(resume("parts", {"--epochs", "9"}).code, 0);
  EXPECT_EQ(metrics("parts").size(), 5U);
  EXPECT_TRUE(same_file("run/last.h5", "parts/last.h5"));

  // Without --patience all epochs must be done.
  ASSERT_EQ(run(standing("all", {"--epochs", "5"})).code, 0);
  EXPECT_EQ(metrics("all").size(), 6U);
  const Finished none =
      run(standing("none", {"--epochs", "1", "--test-data", "none", "--patience", "1"}));
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_TRUE(holds(none.err, "--patience: has no effect without held-out classes"));
}

// Epochs without held-out classes have no metric, so the first epoch with one must be the best.
TEST_F(RunRecord, TheFirstEpochWithAValueIsTheBestSoFar) {
  ASSERT_EQ(run(on_pictures("run", {"--epochs", "3", "--test-data", "none"}, 1)).code, 0);
  EXPECT_EQ(Checkpoint(in("run/best.h5")).run().epoch, 3);
  const Finished done =
      resume("run", {"--allow-changed-data", "--test-data", "glyphs:classes=4,images=4,size=32",
                     "--epochs", "5", "--patience", "2"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, "no epoch so far has a value of map_at_r"));
  const std::vector<json> lines = metrics("run");
  ASSERT_EQ(lines.size(), 6U);
  const double fourth = lines[4]["map_at_r"], fifth = lines[5]["map_at_r"];
  const RunState best = Checkpoint(in("run/best.h5")).run();
  EXPECT_EQ(best.epoch, fifth > fourth ? 5 : 4);
  EXPECT_EQ(best.best, std::max(fourth, fifth));
}

// Of eight batches an epoch, changed data leave four; at least six were done before.
TEST_F(RunRecord, AnEpochWhoseDataShrinkKeepsItsLoss) {
  folder_.classes("pics/train/c", 8, 16);
  folder_.classes("pics/test/t", 2, 4);
  const Words words = on_pictures("run", {"--batches", "0", "--epochs", "1"});
  const std::string signal = fmt::format("open,{},1,s{},/pics/train/", 128 + 16 * 8 - 1, SIGUSR1);
  ASSERT_EQ(run(with_faults(words, signal)).code, 128 + SIGUSR1);
  const RunState stopped = Checkpoint(in("run/last.h5")).run();
  ASSERT_GT(stopped.batch, 4);
  for (int c = 4; c < 8; ++c) std::filesystem::remove_all(in(fmt::format("pics/train/c{}", c)));
  const Finished done = resume("run", {"--allow-changed-data"});
  ASSERT_EQ(done.code, 0) << done.err;
  const double mean = stopped.loss_sum / static_cast<double>(stopped.batch);
  EXPECT_NEAR(metrics("run").at(1)["loss"].get<double>(), mean, 1e-6 * mean);
}

// Held-out classes of one picture each have nothing to find: their metrics are undefined, not 0.
TEST_F(RunRecord, WhatIsUndefinedIsNoZeroAndNeedsNoPatience) {
  folder_.classes("lone/train/c", 8, 4);
  folder_.classes("lone/test/t", 4, 1);
  const Finished done = run(command("run",
                                    {"--data", "folder:" + in("lone"), "--epochs", "4",
                                     "--patience", "1", "--json", in("run.json")},
                                    1));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, "held out: no picture has another of its class"));
  EXPECT_EQ(metrics("run").size(), 5U);
  EXPECT_EQ(Checkpoint(in("run/best.h5")).run().epoch, 4);
  EXPECT_TRUE(holds(done.out, "R@1 undefined at the start, undefined trained; MAP@R undefined"));
  EXPECT_TRUE(holds(done.out, "best.h5: of epoch 4, R@1 undefined, MAP@R undefined"));
  EXPECT_FALSE(holds(done.out, "no epoch had a higher"));
  EXPECT_TRUE(json::parse(file_text(in("run.json")))["best"]["map_at_r"].is_null());
}

// A table that is no longer written would be out of date, so it must be removed.
TEST_F(RunRecord, ATableThatIsNoLongerWrittenGoes) {
  ASSERT_EQ(run(on_pictures("run", {"--log", "csv"}, 1)).code, 0);
  ASSERT_TRUE(std::filesystem::exists(in("run/metrics.csv")));
  const Finished without = resume("run", {"--log", "none", "--epochs", "3"});
  ASSERT_EQ(without.code, 0);
  EXPECT_FALSE(std::filesystem::exists(in("run/metrics.csv")));
  EXPECT_TRUE(holds(without.err, "run/metrics.csv: removed, since --log none"));
  // But not one that somebody else put there.
  folder_.write("run/metrics.csv", "mine\n");
  ASSERT_EQ(resume("run", {"--epochs", "4"}).code, 0);
  EXPECT_EQ(file_text(in("run/metrics.csv")), "mine\n");
  const Finished refused = resume("run", {"--log", "csv", "--epochs", "5"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(holds(refused.err, "metrics.csv: is not of this run, which would put its"));
  EXPECT_EQ(file_text(in("run/metrics.csv")), "mine\n");
  ASSERT_EQ(resume("run", {"--log", "csv", "--epochs", "5", "--force"}).code, 0);
  EXPECT_EQ(csv("run").size(), 1U + metrics("run").size());
  // Its own it knows, though the checkpoint was written before the table.
  ASSERT_EQ(run(on_pictures("over", {}, 1)).code, 0);
  for (int time = 0; time < 2; ++time) {
    const Finished over = resume("over", {"--log", "csv"});
    ASSERT_EQ(over.code, 0) << over.err;
    EXPECT_FALSE(holds(over.err, "--log: has no effect")) << over.err;
    EXPECT_EQ(csv("over").size(), 1U + metrics("over").size());
  }
}

TEST_F(RunRecord, TheResultMayLieInTheNewFolder) {
  ASSERT_EQ(run(on_pictures("run/", {"--json", in("run/result.json")}, 1)).code, 0);
  EXPECT_EQ(json::parse(file_text(in("run/result.json")))["epochs"], 2);
  const Finished below = run(on_pictures("other", {"--json", in("other/deeper/result.json")}, 1));
  EXPECT_EQ(below.code, 3);
  EXPECT_TRUE(holds(below.err, "there is no folder"));
  EXPECT_FALSE(std::filesystem::exists(in("other")));
}

TEST_F(RunRecord, NothingHeldOutTakesNoMemoryForEvaluation) {
  const Finished with = run(on_pictures("with", {"--epochs", "1"}, 1));
  EXPECT_TRUE(holds(with.err, ", evaluation "));
  const Finished none = run(on_pictures("none", {"--epochs", "1", "--test-data", "none"}, 1));
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_TRUE(holds(none.err, "memory in MiB: "));
  EXPECT_FALSE(holds(none.err, ", evaluation ")) << none.err;
}

// The short side of the checkpoint belongs to the size of its pictures.
TEST_F(RunRecord, AnotherImageSizeHasItsOwnShortSide) {
  ASSERT_EQ(run(on_pictures("run", {}, 1)).code, 0);
  const Finished larger = resume("run", {"--image-size", "28", "--epochs", "3"});
  ASSERT_EQ(larger.code, 0) << larger.err;
  EXPECT_EQ(metrics("run").size(), 4U);
  EXPECT_TRUE(holds(file_text(in("run/settings.toml")), "resize = 32"));
}

TEST_F(RunRecord, TheTableHoldsTheNumbersOfTheLines) {
  ASSERT_EQ(run(on_pictures("run", {"--log", "csv", "--eval-train", "64"}, 1)).code, 0);
  const std::vector<json> lines = metrics("run");
  const auto rows = csv("run");
  ASSERT_EQ(rows.size(), lines.size() + 1);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ASSERT_EQ(rows[i + 1].size(), rows[0].size());
    std::size_t found = 0;
    for (const auto& [key, value] : lines[i].items()) {
      if (value.is_object() && key != "train") continue;
      const json values = value.is_object() ? value : json({{key, value}});
      const std::string prefix = value.is_object() ? key + "_" : "";
      for (const auto& [name, number] : values.items()) {
        if (!number.is_number()) continue;
        const auto column = std::find(rows[0].begin(), rows[0].end(), prefix + name);
        ASSERT_NE(column, rows[0].end()) << prefix << name;
        EXPECT_EQ(json::parse(rows[i + 1][at(column - rows[0].begin())]), number);
        ++found;
      }
    }
    EXPECT_GT(found, 30U);
  }
  EXPECT_EQ(rows[0][0], "epoch");
  const auto loss = std::find(rows[0].begin(), rows[0].end(), "loss") - rows[0].begin();
  EXPECT_EQ(rows[1][at(loss)], "") << "there is none before training";
  EXPECT_NE(rows[2][at(loss)], "");
  ASSERT_EQ(run(on_pictures("without", {"--epochs", "1"}, 1)).code, 0);
  EXPECT_FALSE(std::filesystem::exists(in("without/metrics.csv")));
}

}  // namespace
}  // namespace rk
