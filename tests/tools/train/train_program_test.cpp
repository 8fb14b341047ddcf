// The real programs on tiny drawn characters: what a user sees, and what any interruption leaves.
#include "tests/tools/train/train_program.h"
#include "data/images/augment.h"
#include "data/sources/glyphs.h"
#include "engine/base/random.h"
#include "engine/system/usable_cores.h"
#include "tests/support/words.h"
#include "weights/checkpoint.h"
#include "weights/foreign/weight_files.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <regex>
#include <sstream>
#include <thread>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST_F(TrainProgram, TrainsEvaluatesAndLeavesARecord) {
  const Finished done = run(command("run", {"--json", in("result.json")}));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.out, "epoch 0/2"));
  EXPECT_TRUE(holds(done.out, "epoch 2/2  loss "));
  EXPECT_TRUE(holds(done.out, " at the start, "));
  EXPECT_TRUE(holds(done.err, "(parameters 1.0"));  // MiB: 272,864 of 4 bytes
  for (const char* file : {"best.h5", "last.h5", "previous.h5", "metrics.jsonl", "settings.toml"}) {
    EXPECT_TRUE(fs::exists(in("run/") + file)) << file;
  }
  const std::vector<json> lines = metrics("run");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["epoch"], 0);
  EXPECT_FALSE(lines[0].contains("loss"));
  EXPECT_EQ(lines[2]["step"], 6);
  EXPECT_GT(lines[2]["loss"], 0.0);
  EXPECT_GT(lines[2]["images_per_second"], 0.0);
  const json result = json::parse(file_text(in("result.json")));
  EXPECT_EQ(result["before"]["recall_at_1"], lines[0]["recall_at_1"]);
  EXPECT_EQ(result["after"]["map_at_r"], lines[2]["map_at_r"]);
  EXPECT_EQ(result["settings"]["loss"], "smooth_ap:tau=0.01,compat=paper");
  EXPECT_TRUE(holds(file_text(in("run/settings.toml")), "per-class = 4\n"));

  // The recorded settings, used as a recipe, must give the same run.
  const Finished again =
      run({RK_BIN "/train", "--recipe", in("run/settings.toml"), "--out", in("again"), "--quiet"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out + again.err, "");
  EXPECT_TRUE(same_file("run/last.h5", "again/last.h5"));

  // `eval` must find the metrics that the run reported.
  const Finished eval = run({RK_BIN "/eval", "--checkpoint", in("run/last.h5"), "--data",
                             result["settings"]["data"], "--split", "test", "--threads", "2",
                             "--json", in("eval.json"), "--save-embeddings", in("e.h5")});
  ASSERT_EQ(eval.code, 0) << eval.err;
  const json said = json::parse(file_text(in("eval.json")))["metrics"];
  EXPECT_EQ(said["map_at_r"], lines[2]["map_at_r"]);
  EXPECT_EQ(said["recall_at_1"], lines[2]["recall_at_1"]);
  const Finished saved = run(
      {RK_BIN "/eval", "--embeddings", in("e.h5"), "--threads", "2", "--json", in("saved.json")});
  ASSERT_EQ(saved.code, 0) << saved.err;
  EXPECT_EQ(json::parse(file_text(in("saved.json")))["metrics"]["map_at_r"], lines[2]["map_at_r"]);

  // A finished run has nothing left to do, and must not be overwritten unasked. Its settings stay
  // those that it was trained with.
  const std::string settings = file_text(in("run/settings.toml"));
  const Finished over = resume("run", {"--epochs", "1", "--lr", "5"});
  EXPECT_TRUE(holds(over.out, "2 epochs are done, more than --epochs 1; more with a larger one"));
  EXPECT_TRUE(holds(over.err, "note: --lr: has no effect on a run that is over"));
  EXPECT_FALSE(holds(over.err, "--epochs: has no effect")) << over.err;  // said as why it is over
  EXPECT_FALSE(holds(over.err, "from now on")) << over.err;
  EXPECT_EQ(file_text(in("run/settings.toml")), settings);
  EXPECT_TRUE(holds(resume("run").out, "all 2 epochs are done; more with --epochs"));
  // Inside a run's folder: the one that is missing is not taken for it.
  const Finished nowhere = run_to_end({RK_BIN "/train", "--data", "glyphs"}, in("run"));
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_TRUE(holds(nowhere.err, "--out is missing"));
  EXPECT_TRUE(holds(run({RK_BIN "/train", "--resume", "auto"}).err,
                    "--out is missing; give the folder of the run that is to go on"));
  const Finished unasked = run(command("run"));
  EXPECT_EQ(unasked.code, 3);
  EXPECT_TRUE(holds(unasked.err, "holds a run already; --resume auto"));
  // A wrong value must be reported before the state of the folder.
  const Finished mistyped = run(command("run", {"--loss", "smooth_app"}));
  EXPECT_EQ(mistyped.code, 2);
  EXPECT_TRUE(holds(mistyped.err, "smooth_app"));
}

TEST_F(TrainProgram, ARunsFolderSaysWhatProducedIt) {
  const auto starts = [&] { return json::parse(file_text(in("run/run.json"))).at("starts"); };
  ASSERT_EQ(run(command("run", {"--epochs", "1", "--seed", "7"}, 2)).code, 0);
  ASSERT_EQ(starts().size(), 1U);
  const json first = starts()[0];
  EXPECT_EQ(first["version"], RK_VERSION);
  EXPECT_EQ(first["device"], "cpu");
  EXPECT_EQ(first["seed"], 7);
  EXPECT_EQ(first["step"], 0);
  EXPECT_EQ(first["working_folder"], fs::current_path().string());
  EXPECT_EQ(first["train"]["images"], 64);
  EXPECT_EQ(first["train"]["classes"], 8);
  EXPECT_EQ(first["train"]["categories"], 2);
  EXPECT_EQ(first["held_out"]["images"], 64);
  EXPECT_EQ(first["held_out"]["part"], "split test");
  EXPECT_TRUE(holds(first["environment"], "2 threads"));
  EXPECT_TRUE(std::regex_match(first["date"].get<std::string>(),
                               std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")));
  // The recorded command must be enough to repeat the run.
  EXPECT_TRUE(holds(first["command"], RK_BIN "/train --data glyphs:"));
  EXPECT_TRUE(holds(first["command"], " --seed 7"));
  const Finished git = run({"/usr/bin/env", "git", "-C", RK_TEST_GOLDEN, "rev-parse", "HEAD"});
  if (git.code == 0) {
    EXPECT_TRUE(std::regex_match(first["commit"].get<std::string>(),
                                 std::regex("[0-9a-f]{40}(, with changes)?")));
  }

  ASSERT_EQ(resume("run", {"--epochs", "2"}).code, 0);
  ASSERT_EQ(starts().size(), 2U);
  EXPECT_EQ(starts()[0], first);
  EXPECT_EQ(starts()[1]["step"], 2);
  EXPECT_TRUE(holds(starts()[1]["command"], "--resume auto --epochs 2"));
  ASSERT_EQ(resume("run").code, 0);  // there was nothing left to do
  EXPECT_EQ(starts().size(), 2U);

  // A lost history must not stop the run.
  folder_.write("run/run.json", "[1,");
  const Finished without = resume("run", {"--epochs", "3"});
  EXPECT_EQ(without.code, 0);
  EXPECT_TRUE(holds(without.err, "run.json: does not tell how this run began"));
  EXPECT_EQ(starts().size(), 1U);

  ASSERT_EQ(run(command("from", {"--epochs", "1", "--weights", in("run/last.h5")}, 1)).code, 0);
  const json from = json::parse(file_text(in("from/run.json"))).at("starts")[0];
  EXPECT_EQ(from["weights"], in("run/last.h5"));
  EXPECT_EQ(from["weights_sha256"].get<std::string>().size(), 64U);
}

TEST_F(TrainProgram, AnEpochLaterIsTheSameAsAllAtOnce) {
  // Without held-out classes the last epoch is the best, so both runs must have the same best.h5.
  const Words alone = {"--test-data", "none", "--optimizer", "adam"};
  ASSERT_EQ(run(command("straight", alone)).code, 0);
  ASSERT_EQ(run(command("parts", with_flags(alone, {"--epochs", "1"}))).code, 0);
  const Finished second = resume("parts", {"--epochs", "2"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_TRUE(holds(second.err, "epochs: 1 in the checkpoint, 2 from now on"));
  EXPECT_TRUE(same_file("straight/last.h5", "parts/last.h5"));
  EXPECT_TRUE(same_file("straight/best.h5", "parts/best.h5"));
}

// The starting point can be looked at and handed on; the run from there is the one without a stop.
TEST_F(TrainProgram, NoEpochsSaveWhatTrainingBeginsWith) {
  const Words cosine = {"--schedule", "cosine", "--lr", "0.5", "--lr-floor", "0.1"};
  ASSERT_EQ(run(command("straight", cosine)).code, 0);
  const Finished none =
      run(command("parts", with_flags(cosine, {"--epochs", "0", "--json", in("none.json")})));
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_TRUE(holds(none.out, "epoch 0/0  R@1 "));
  EXPECT_FALSE(holds(none.out, "at the start")) << none.out;  // nothing to compare it with
  EXPECT_TRUE(holds(none.out, "parts: last.h5, metrics.jsonl, settings.toml, run.json\n"));
  const json result = json::parse(file_text(in("none.json")));
  EXPECT_EQ(result["steps"], 0);
  EXPECT_EQ(result["before"], result["after"]);
  EXPECT_EQ(result["before"]["map_at_r"], metrics("straight")[0]["map_at_r"]);
  EXPECT_TRUE(holds(resume("parts").out, "parts: is as before the first step; training goes on"));

  const Finished second = resume("parts", {"--epochs", "2"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_TRUE(holds(second.err, "last.h5: before the first step"));
  EXPECT_TRUE(same_file("straight/last.h5", "parts/last.h5"));
  EXPECT_TRUE(same_file("straight/best.h5", "parts/best.h5"));
  const std::vector<json> lines = metrics("parts");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_FALSE(lines[0].contains("learning_rate"));
  // Of step 2 of 6 (from 0), a third of the way down, and of step 5.
  EXPECT_DOUBLE_EQ(lines[1]["learning_rate"], 0.5 * (0.1 + 0.9 * 0.75));
  EXPECT_DOUBLE_EQ(lines[2]["learning_rate"],
                   0.5 * (0.1 + 0.45 * (1 + std::cos(std::numbers::pi * 5 / 6))));
}

// A run that each signal stops in the middle of an epoch and that is resumed must equal an
// undisturbed one to the last bit.
TEST_F(TrainProgram, AnySignalSavesAndResumingIsBitEqual) {
  ::signal(SIGHUP, SIG_DFL);  // nohup makes the test and its children ignore SIGHUP
  constexpr int kBatches = 10;
  const Words momentum = {"--momentum", "0.9"}, on_cpu = {"--momentum", "0.9", "--device", "cpu"};
  ASSERT_EQ(run(on_pictures("straight", momentum, kBatches)).code, 0);
  const std::pair<int, int> signals[] = {
      {SIGTERM, 143}, {SIGINT, 130}, {SIGUSR1, 138}, {SIGHUP, 143}};
  std::int64_t steps = 0;
  for (const auto& [signal, code] : signals) {
    const bool fresh = steps == 0;
    // At most five of the 20 steps are done when the signal comes.
    const Finished stopped =
        run(with_faults(fresh ? on_pictures("stopped", on_cpu, kBatches) : resuming("stopped"),
                        at_batch(4, fresh, fmt::format("s{}", signal))));
    ASSERT_EQ(stopped.code, code) << stopped.err;
    EXPECT_TRUE(holds(stopped.err, "--out " + in("stopped") + " --resume auto" +
                                       (fresh ? " --device cpu\n" : "\n")));
    EXPECT_FALSE(holds(stopped.err, "--json"));
    const RunState saved = Checkpoint(in("stopped/last.h5")).run();
    EXPECT_GT(saved.step, steps);
    EXPECT_TRUE(!fresh || saved.batch > 0);
    steps = saved.step;
  }
  const Finished done = resume("stopped");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(same_file("straight/last.h5", "stopped/last.h5"));
  EXPECT_TRUE(same_file("straight/best.h5", "stopped/best.h5"));
  const std::vector<json> a = metrics("straight"), b = metrics("stopped");
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i]["map_at_r"], b[i]["map_at_r"]);
}

// Runs with proxies and chunks, or with memory, chunks, category batches and Adam, that are stopped
// in the middle of an epoch and resumed must end in the same files.
TEST_F(TrainProgram, EveryWayOfTrainingResumesBitEqual) {
  constexpr int kBatches = 8;
  folder_.classes("pics/train/one/c", 4, 8);
  folder_.classes("pics/train/two/c", 4, 8);
  folder_.classes("pics/test/one/t", 4, 8);
  folder_.classes("pics/test/two/t", 4, 8);
  const std::vector<Words> ways = {
      {"--loss", "nsl", "--chunk", "4", "--bn", "train", "--sampler", "random"},
      {"--loss", "fastap", "--memory", "3", "--chunk", "8", "--sampler", "category:per_pair=2",
       "--optimizer", "adam"}};
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const std::string straight = fmt::format("straight{}", way),
                      parts = fmt::format("parts{}", way);
    const Finished whole = run(on_pictures(straight, ways[way], kBatches));
    ASSERT_EQ(whole.code, 0) << whole.err;
    if (way == 0) {
      EXPECT_TRUE(holds(whole.err, "; 8 proxies at 100 times the rate"));
      EXPECT_TRUE(holds(whole.err,
                        "chunks: 4 of 4 images, so that activations are those of 4 "
                        "images, not of 16"));
      EXPECT_TRUE(holds(whole.err, "batch norm sees a chunk at a time"));
    } else if (way == 1) {
      EXPECT_TRUE(holds(whole.err, "48 embeddings of the last 3 batches"));
      EXPECT_TRUE(holds(whole.err, "memory columns 0.0,"));
      EXPECT_TRUE(holds(whole.err, "8 batches an epoch of 16 images, sampler category:per_pair=2"));
    }
    const Finished stopped =
        run(with_faults(on_pictures(parts, ways[way], kBatches), at_batch(5, true, "s15")));
    ASSERT_EQ(stopped.code, 143) << stopped.err;
    ASSERT_GT(Checkpoint(in(parts + "/last.h5")).run().batch, 0);
    const Finished done = resume(parts);
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_TRUE(same_file(straight + "/last.h5", parts + "/last.h5"));
    if (way > 0) continue;
    // `eval` builds no proxies but must accept the file.
    const Finished eval = run(evaluating(parts + "/best.h5", {"--split", "test"}));
    EXPECT_EQ(eval.code, 0) << eval.err;
  }
}

// A run that is stopped during the evaluation after an epoch's last step has no steps left to time,
// so it must report no rate.
TEST_F(TrainProgram, ARateIsThatOfTheStepsThatWereTimed) {
  // The 64 held-out pictures are opened once before the first step and again after the epoch.
  const Finished stopped =
      run(with_faults(on_pictures("run", {"--epochs", "1"}, 1), "open,66,1,s15,/pics/test/"));
  ASSERT_EQ(stopped.code, 143) << stopped.out << stopped.err;
  ASSERT_EQ(Checkpoint(in("run/last.h5")).run().batch, 1);
  const Finished done = resume("run");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.out, "epoch 1/1  loss "));
  EXPECT_FALSE(holds(done.out, "images/s")) << done.out;
  const json line = metrics("run").at(1);
  EXPECT_FALSE(line.contains("images_per_second")) << line.dump();
  EXPECT_FALSE(line.contains("seconds")) << line.dump();

  // Resumed in the middle of an epoch, the rate must be that of the remaining steps, not all of the
  // epoch's images in half of the time.
  constexpr int kBatches = 10;
  const Finished half =
      run(with_faults(on_pictures("half", {"--epochs", "1"}, kBatches), at_batch(5, true, "s15")));
  ASSERT_EQ(half.code, 143) << half.err;
  const std::int64_t before = Checkpoint(in("half/last.h5")).run().batch;
  ASSERT_GT(before, 0);
  ASSERT_EQ(resume("half").code, 0);
  const json rest = metrics("half").at(1);
  EXPECT_EQ(rest.at("timed_batches"), kBatches - before);
  EXPECT_NEAR(rest.at("images_per_second").get<double>() * rest.at("seconds").get<double>(),
              static_cast<double>(16 * (kBatches - before)), 1e-6);
}

TEST_F(TrainProgram, OtherCircumstancesAreSaid) {
  ASSERT_EQ(run(command("run", {"--epochs", "1"})).code, 0);
  const Finished same = resume("run", {"--epochs", "2"});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_FALSE(holds(same.err, "last bit")) << same.err;
  const Finished other = resume("run", {"--epochs", "3", "--threads", "1", "--lr", "0.002"});
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(holds(other.err, ", 1 thread what began under"));
  EXPECT_TRUE(holds(other.err, "not equal to the last bit"));
  EXPECT_TRUE(holds(other.err, "lr: 0.001 in the checkpoint, 0.002 from now on"));
}

TEST_F(TrainProgram, ThreadsThatNoFlagNamesAreLookedAtToo) {
  const int cores = usable_cores();
  if (cores > 511) GTEST_SKIP() << "4096 threads are no eight a processor here";
  const auto from_recipe = [&](int threads) {
    folder_.write("recipe.toml", fmt::format("threads = {}\n", threads));
    return run(
        without(command("run", {"--epochs", "1", "--recipe", in("recipe.toml")}, 1), "--threads"));
  };
  const Finished refused = from_recipe(8 * cores + 1);
  EXPECT_EQ(refused.code, 3) << refused.err;
  EXPECT_TRUE(holds(refused.err, fmt::format("error: {}: threads = {}: this process may use ",
                                             in("recipe.toml"), 8 * cores + 1)));
  EXPECT_FALSE(fs::exists(in("run")));
  const std::string slow = fmt::format("slower than --threads {}\n", cores);
  const Finished taken = from_recipe(cores + 1);
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_TRUE(holds(taken.err, slow));
  const Finished resumed = resume("run", {"--epochs", "2"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(
      holds(resumed.err, fmt::format("last.h5: threads = {}: this process may use ", cores + 1)));
  EXPECT_TRUE(holds(resumed.err, slow));
  const Finished fewer = resume("run", {"--epochs", "3", "--threads", std::to_string(cores)});
  EXPECT_EQ(fewer.code, 0) << fewer.err;
  EXPECT_FALSE(holds(fewer.err, slow)) << fewer.err;
}

TEST_F(TrainProgram, FlagsOfTheSamplerWinOverARecipe) {
  folder_.write("recipe.toml", "sampler = \"category\"\nper-class = 8\n");
  const std::vector<std::string> recipe = {"--recipe", in("recipe.toml"), "--epochs", "1"};
  const auto says = [&](const std::string& out, const std::vector<std::string>& flags) {
    return run(command(out, joined(recipe, flags), 1)).err;
  };
  EXPECT_TRUE(holds(says("a", {}), "of 16 images, sampler category"));
  EXPECT_TRUE(holds(says("b", {"--per-class", "2"}), "of 8 classes x 2"));
  EXPECT_TRUE(holds(says("c", {"--sampler", "pk"}), "of 2 classes x 8"));
  EXPECT_TRUE(holds(says("d", {"--sampler", "random"}), "of 16 images, sampler random"));
  const Finished resumed = resume("d", {"--per-class", "4", "--epochs", "2"});
  EXPECT_TRUE(holds(resumed.err, "sampler: \"random\" in the checkpoint, \"pk\" from now on"));
}

// Without --batch the batch shrinks to the classes there are; the advised chunk must divide that.
TEST_F(TrainProgram, TheAdvisedChunkDividesTheBatchThatIsTaken) {
  const auto with_chunk = [&](const char* chunk) {
    return run(without(command("out",
                               {"--epochs", "1", "--chunk", chunk, "--data",
                                "glyphs:classes=12,test_classes=2,alphabets=2,images=4,size=32"},
                               1),
                       "--batch"));
  };
  const Finished refused = with_chunk("32");
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_TRUE(holds(refused.err, "--chunk 32: does not divide --batch 48; use 24"));
  EXPECT_FALSE(fs::exists(in("out")));
  const Finished advised = with_chunk("24");
  EXPECT_EQ(advised.code, 0) << advised.err;
}

// A run that begins with weights must prepare images as the network learnt, unless told otherwise.
TEST_F(TrainProgram, WeightsBringTheirInputAlong) {
  ASSERT_EQ(run(command("run", {"--epochs", "1", "--input-mean", "0.9", "--input-std",
                                "0.25,0.5,0.75", "--resize", "36"}))
                .code,
            0);
  std::vector<std::string> words =
      command("next", {"--weights", in("run/best.h5"), "--epochs", "1"});
  for (const char* flag : {"--image-size", "--resize"}) words = without(words, flag);
  const Finished taken = run(words);
  ASSERT_EQ(taken.code, 0) << taken.err;
  EXPECT_TRUE(holds(taken.err, "as " + in("run/best.h5") +
                                   " has it: pool avg, input-mean 0.9,0.9,0.9, input-std "
                                   "0.25,0.5,0.75, image-size 16, resize 36"));
  const ModelDescription model = Checkpoint(in("next/last.h5")).model();
  EXPECT_EQ(model.input_mean, (std::array{0.9, 0.9, 0.9}));
  EXPECT_EQ(model.input_std, (std::array{0.25, 0.5, 0.75}));
  EXPECT_EQ(model.crop, 16);
  EXPECT_EQ(model.resize, 36);
  EXPECT_TRUE(holds(taken.err, "batch norm frozen"));

  const Finished given =
      run(command("given", {"--weights", in("run/best.h5"), "--epochs", "1", "--input-mean", "0.5",
                            "--input-std", "0.5", "--pool", "avg"}));
  ASSERT_EQ(given.code, 0) << given.err;
  EXPECT_FALSE(holds(given.err, "has it")) << given.err;
  EXPECT_EQ(Checkpoint(in("given/last.h5")).model().input_mean, (std::array{0.5, 0.5, 0.5}));
}

// Unless flags describe the network, a run that begins with weights must take their network, with
// the embedding layer.
TEST_F(TrainProgram, WeightsBringTheirNetworkAlong) {
  ASSERT_EQ(run(command("run", {"--epochs", "1", "--pool", "gem", "--gem-p", "2"})).code, 0);
  const auto next = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> words =
        command(out, {"--weights", in("run/last.h5"), "--epochs", "1"}, 1);
    for (const char* flag : {"--arch", "--dim"}) words = without(words, flag);
    return run(joined(words, more));
  };
  const Finished taken = next("next", {});
  ASSERT_EQ(taken.code, 0) << taken.err;
  EXPECT_TRUE(holds(taken.err, " has it: arch resnet20, pool gem, gem-p 2, dim 16, input-mean"));
  EXPECT_FALSE(holds(taken.err, "but not its embedding layer")) << taken.err;
  EXPECT_EQ(metrics("next").at(0).at("map_at_r"), metrics("run").at(1).at("map_at_r"));
  // A flag may replace the embedding layer, but never the network.
  const Finished wider = next("wider", {"--dim", "32"});
  EXPECT_EQ(wider.code, 0) << wider.err;
  EXPECT_TRUE(holds(wider.err, "but not its embedding layer, which has another size"));
  EXPECT_EQ(Checkpoint(in("wider/last.h5")).model().dim, 32);
  // Foreign weights have a classifier instead, which must not be called a layer of another size.
  NetworkWeights others = network_weights(Checkpoint(in("run/last.h5")));
  std::erase_if(others.tensors, [](const auto& t) { return t.name.starts_with("embedding."); });
  others.model.dim = 0;
  const auto write = [&] { folder_.write("others.h5", checkpoint_bytes(others)); };
  write();
  const Finished bare = next("bare", {"--weights", in("others.h5"), "--dim", "16"});
  EXPECT_TRUE(holds(bare.err, "weights: " + in("others.h5") + "\n"));
  const std::vector<float> values(std::size_t{5} * 64, 0.5F);
  others.tensors.push_back({"fc.weight", {5, 64}, values, 0, nullptr});
  others.tensors.push_back({"fc.bias", {5}, std::span(values).first(5), 0, nullptr});
  write();
  const Finished classes = next("classes", {"--weights", in("others.h5"), "--dim", "16"});
  EXPECT_EQ(classes.code, 0) << classes.err;
  EXPECT_TRUE(
      holds(classes.err, "weights: " + in("others.h5") + " (its classifier is left out)\n"));
  const Finished other = next("other", {"--arch", "resnet50"});
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(holds(other.err, "--arch resnet50: " + in("run/last.h5") + " holds a resnet20"));
}

// A run that was killed after it saved best.h5 of the last epoch, but before it saved last.h5 and
// the record, must write these when it is resumed.
TEST_F(TrainProgram, KilledBetweenItsLastWritesItFinishesThem) {
  // Without held-out classes every epoch is the best.
  ASSERT_EQ(run(command("run", {"--test-data", "none"})).code, 0);
  const std::string last = file_text(in("run/last.h5"));
  const std::string record = file_text(in("run/metrics.jsonl"));
  fs::rename(in("run/previous.h5"), in("run/last.h5"));
  ASSERT_NE(file_text(in("run/last.h5")), last);
  std::ofstream(in("run/metrics.jsonl")) << record.substr(0, record.find('\n') + 1);
  std::ofstream(in("run/.last.h5.tmp.99999999")) << "part of it";
  const Finished done = resume("run");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(file_text(in("run/last.h5")) == last);
  EXPECT_EQ(metrics("run").size(), 3U);
  EXPECT_FALSE(fs::exists(in("run/.last.h5.tmp.99999999")));
}

// As a quota or a copy that was cut leaves it: its times are lost, the rest is in the checkpoint.
TEST_F(TrainProgram, ARecordThatLostItsEndIsWrittenAgain) {
  ASSERT_EQ(run(command("run")).code, 0);
  const std::string record = file_text(in("run/metrics.jsonl"));
  for (const std::size_t lost : {2U, 30U, 200U}) {
    std::ofstream(in("run/metrics.jsonl")) << record.substr(0, record.size() - lost);
    const Finished done = resume("run");
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(metrics("run").size(), 3U) << lost;
  }
}

TEST_F(TrainProgram, ADamagedCheckpointGivesWayToThePreviousOne) {
  ASSERT_EQ(run(command("run")).code, 0);
  const std::string whole = file_text(in("run/last.h5"));
  damage("run/last.h5");
  fs::remove(in("run/best.h5"));
  const Finished resumed = resume("run");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(holds(resumed.err, "skipped: " + in("run/last.h5") + ": is damaged"));
  EXPECT_TRUE(holds(resumed.err, "going on from " + in("run/previous.h5") + ": after epoch 1"));
  EXPECT_EQ(file_text(in("run/last.h5")), whole);
  EXPECT_EQ(Checkpoint(in("run/previous.h5")).run().epoch, 1);  // not the damaged one

  damage("run/last.h5");
  damage("run/previous.h5");
  fs::remove(in("run/best.h5"));
  const Finished none = resume("run");
  EXPECT_EQ(none.code, 3);
  EXPECT_TRUE(holds(none.err, "holds no valid checkpoint"));
}

TEST_F(TrainProgram, WeightsAloneInARunsFolderAreNotReplaced) {
  ASSERT_EQ(run(command("run")).code, 0);
  ASSERT_EQ(run({RK_BIN "/convert", in("run/best.h5"), in("weights.h5")}).code, 0);
  fs::rename(in("run/last.h5"), in("run/kept.h5"));
  fs::copy(in("weights.h5"), in("run/last.h5"));
  const Finished refused = resume("run", {"--epochs", "3"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(holds(refused.err, in("run/last.h5") + ": holds weights alone, no run, and a run"));
  EXPECT_TRUE(same_file("weights.h5", "run/last.h5"));
  fs::remove(in("run/last.h5"));
  EXPECT_EQ(resume("run", {"--epochs", "3"}).code, 0);
}

TEST_F(TrainProgram, DivergingKeepsTheLastGoodCheckpoint) {
  ASSERT_EQ(run(command("run", {"--epochs", "1"})).code, 0);
  const std::string before = file_text(in("run/last.h5"));
  const Finished diverged = resume("run", {"--epochs", "3", "--lr", "1e30"});
  EXPECT_EQ(diverged.code, 4);
  EXPECT_TRUE(holds(diverged.err, "diverged"));
  EXPECT_TRUE(holds(diverged.err, "the last good checkpoint is " + in("run/last.h5")));
  EXPECT_EQ(file_text(in("run/last.h5")), before);
  EXPECT_TRUE(holds(diverged.err, "batch and layers are in " + in("run/diverged.json")));
  const json dump = json::parse(file_text(in("run/diverged.json")));
  EXPECT_TRUE(holds(diverged.err, dump["what"]));
  EXPECT_GE(dump["step"], 4);
  EXPECT_EQ(dump["epoch"], 2);
  EXPECT_EQ(dump["learning_rate"], 1e30);
  ASSERT_EQ(dump["images"].size(), 16U);
  EXPECT_TRUE(holds(dump["images"][0], "glyphs"));
  ASSERT_FALSE(dump["layers"].empty());
  bool found = false;
  for (const json& layer : dump["layers"]) {
    EXPECT_GE(layer["values"], layer["not_finite"]);
    if (!found && layer["not_finite"] > 0) {
      found = true;
      EXPECT_EQ(dump["first_layer_not_finite"], layer["name"]);
    }
  }
  EXPECT_TRUE(found || !dump["gradients_not_finite"].empty()) << dump.dump(1);
}

// Nothing has diverged where nothing has been learnt.
TEST_F(TrainProgram, WeightsThatComputeNoNumbersAreBadInput) {
  ASSERT_EQ(run(command("run", {"--epochs", "1"}, 1)).code, 0);
  ASSERT_EQ(run({RK_BIN "/convert", "-q", "--from-run", in("run"), in("w.safetensors")}).code, 0);
  std::string bytes = file_text(in("w.safetensors"));
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  const auto begin = static_cast<std::ptrdiff_t>(8 + length);
  const auto header = nlohmann::json::parse(bytes.begin() + 8, bytes.begin() + begin);
  // Convolutions' weights of 9.1e11 are let in; behind the fourth layer no number is finite.
  for (const auto& [name, tensor] : header.items()) {
    if (name.find("conv") == std::string::npos) continue;
    const auto& at = tensor.at("data_offsets");
    std::fill(bytes.begin() + begin + at.at(0).get<std::ptrdiff_t>(),
              bytes.begin() + begin + at.at(1).get<std::ptrdiff_t>(), '\x53');
  }
  folder_.write("w.safetensors", bytes);
  const Finished end = run(command("next", {"--weights", in("w.safetensors"), "--epochs", "1"}, 1));
  EXPECT_EQ(end.code, 3) << end.err;
  EXPECT_TRUE(holds(end.err, in("w.safetensors") + ": the network makes NaN or infinity of "));
  EXPECT_TRUE(holds(end.err, " before it has learnt anything; start from other weights"));
}

// The loss diverges in the last step of an epoch, which only the evaluation after it can notice.
TEST_F(TrainProgram, DivergingIsToldWhoeverNoticesIt) {
  const Finished diverged =
      run(command("run", {"--epochs", "1", "--optimizer", "adam", "--lr", "1e9"}, 1));
  EXPECT_EQ(diverged.code, 4) << diverged.err;
  EXPECT_TRUE(holds(diverged.err, "training diverged: after step 1"));
  const json dump = json::parse(file_text(in("run/diverged.json")));
  EXPECT_EQ(dump["step"], 1);
  EXPECT_EQ(dump["images"].size(), 16U);
  // A later run that succeeds must remove the failed one's diverged.json.
  EXPECT_EQ(run(command("run", {"--epochs", "1"}, 1)).code, 0);
  EXPECT_FALSE(fs::exists(in("run/diverged.json")));
}

// Ctrl-C must be answered long before the step is over; a second one must say what it costs.
TEST_F(TrainProgram, CtrlCIsAnsweredAtOnce) {
  // 64 pictures of 160 pixels make steps of seconds.
  ChildProcess child(command("run",
                             {"--image-size", "160", "--resize", "160", "--batch", "64",
                              "--per-class", "8", "--test-data", "none", "--threads", "1"},
                             50),
                     folder_.path().string());
  child.wait_for([&] { return fs::exists(in("run/metrics.jsonl")); });
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  child.send(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_TRUE(child.running()) << "the step was too short for this test";
  EXPECT_TRUE(holds(child.said_so_far(), "finishing the step under way, then saving to " +
                                             in("run") + " (the first step: how long is not"));
  child.send(SIGINT);
  const Finished end = child.wait();
  EXPECT_EQ(end.code, 130);
  EXPECT_TRUE(
      holds(end.err, "stopped at once, which loses 1 batch since the last save; nothing was"));
}

// While a save is under way a folder holds up to four checkpoints: two in a run of one epoch, three
// in a run of two.
TEST_F(TrainProgram, TheDiskIsAskedForWhatTheRunNeeds) {
  // Checkpoints of 45 MB each, so that a run's other files do not matter.
  ASSERT_EQ(run(command("run", {"--arch", "resnet18", "--epochs", "1"}, 1)).code, 0);
  const auto one = fs::file_size(in("run/last.h5"));
  // On a disk with room for so many checkpoints.
  const auto with_disk = [&](double files, const Words& words) {
    return joined({"/usr/bin/env", std::string("LD_PRELOAD=") + RK_FAKE_STATVFS,
                   fmt::format("RK_FAKE_FREE_BYTES={:.0f}", files * static_cast<double>(one))},
                  words);
  };
  const auto trained = [&](const std::string& out, const char* epochs, double files,
                           const char* minutes) {
    return run(with_disk(
        files,
        command(out, {"--arch", "resnet18", "--epochs", epochs, "--save-every", minutes}, 1)));
  };
  for (const auto& [epochs, files] : {std::pair{"1", 2}, {"2", 3}, {"9", 4}}) {
    const Finished refused = trained("none", epochs, files - 0.1, "0");
    EXPECT_EQ(refused.code, 3) << epochs;
    EXPECT_TRUE(holds(refused.err, "are needed for checkpoints"));
    EXPECT_FALSE(fs::exists(in("none")));
  }
  // With saves within epochs there may be four even in a run of one epoch.
  EXPECT_EQ(trained("none", "1", 3.9, "30").code, 3);
  EXPECT_EQ(trained("two", "2", 3.1, "0").code, 0);
  // A folder that already holds three needs room only for the one that is being written.
  EXPECT_EQ(run(with_disk(1.1, resuming("two", {"--epochs", "3"}))).code, 0);
}

// A run needs the network's parameters ten times, for training and saving, what evaluation takes
// besides, and part of the pictures. ResNet-20 has fewer of these than its activations take, so
// that chunks help. If that does not fit, a given --batch must be refused with advice that works; a
// default batch must be split.
TEST_F(TrainProgram, MemoryThatDoesNotSufficeIsSaidWithWhatDoes) {
  const std::string said = "this machine's memory is too small: ";
  const std::vector<std::string> large = {"--epochs",     "1",  "--arch",      "resnet20",
                                          "--image-size", "64", "--resize",    "64",
                                          "--eval-batch", "1",  "--optimizer", "adam"};
  // MiB for a single image; they depend on the processor through the library's scratch memory.
  const auto least = [&](const std::vector<std::string>& words) {
    const Finished none = run(with_free(10, words));
    std::smatch need;
    const std::regex says(said + "a single image needs ([0-9.]+) GiB");
    EXPECT_TRUE(std::regex_search(none.err, need, says)) << none.err;
    return need.empty() ? 0 : static_cast<int>(1024 * std::stod(need[1].str())) + 6;
  };
  const int few = least(command("none", large, 1)) + 8;
  const Finished little = run(with_free(few, command("little", large, 1)));
  EXPECT_EQ(little.code, 5) << little.err;
  ASSERT_TRUE(holds(little.err, "error: " + said + "16 images at a time need 0."));
  EXPECT_FALSE(fs::exists(in("little")));
  std::smatch chunk;
  ASSERT_TRUE(std::regex_search(little.err, chunk, std::regex("use --chunk ([0-9]+) ")));

  // The advised --chunk must work.
  const std::vector<std::string> smaller = joined(large, {"--chunk", chunk[1].str()});
  const Finished advised = run(with_free(few, command("advised", smaller, 1)));
  EXPECT_EQ(advised.code, 0) << advised.err;

  // If evaluation and the like take the memory rather than training, the message must say so.
  std::vector<std::string> beside = large;
  *(std::find(beside.begin(), beside.end(), "--eval-batch") + 1) = "1024";
  beside = joined(beside, {"--data", "glyphs:classes=8,test_classes=200,images=8,size=32"});
  const Finished many = run(with_free(few, command("many", beside, 1)));
  EXPECT_EQ(many.code, 5) << many.err;
  EXPECT_TRUE(
      std::regex_search(many.err, std::regex("; of what is needed, [0-9.]+ GiB are for evaluation "
                                             "\\(less below --eval-batch 1024\\)\n")))
      << many.err;
  EXPECT_FALSE(holds(little.err, "--eval-batch")) << little.err;
  // Nothing held out needs no memory for evaluation.
  const Finished none =
      run(with_free(few, command("none", joined(beside, {"--test-data", "none"}), 1)));
  EXPECT_FALSE(holds(none.err, "for evaluation")) << none.err;

  // Chunks make the network's part of a batch smaller, not the loss's.
  const Finished memory =
      run(with_free(few, command("memory", joined(smaller, {"--memory", "65536"}), 1)));
  EXPECT_EQ(memory.code, 5) << memory.err;
  EXPECT_TRUE(std::regex_search(
      memory.err, std::regex("; of what is needed, 0\\.[0-9]+ GiB are for the loss \\(less below "
                             "--memory 65536\\)\n")))
      << memory.err;
  EXPECT_FALSE(holds(little.err, "for the loss")) << little.err;

  // Without --batch nobody asked for 128 images at once: the run must choose chunks, say so, and
  // record them.
  const auto unasked = [&](const std::string& out) {
    return without(
        command(out,
                {"--epochs", "1", "--arch", "resnet20", "--image-size", "32", "--resize", "32",
                 "--eval-batch", "1", "--optimizer", "adam", "--data",
                 "glyphs:classes=32,test_classes=2,alphabets=2,test_alphabets=2,images=4,size=32"},
                1),
        "--batch");
  };
  const Finished cut = run(with_free(least(unasked("never")) + 20, unasked("cut")));
  ASSERT_EQ(cut.code, 0) << cut.err;
  ASSERT_TRUE(std::regex_search(
      cut.err, chunk,
      std::regex("note: all 128 images of a batch at once do not fit .* they go through the "
                 "network ([0-9]+) at a time \\(--chunk ([0-9]+)\\)")))
      << cut.err;
  EXPECT_EQ(chunk[1].str(), chunk[2].str());
  EXPECT_LT(std::stoi(chunk[1].str()), 128);
  EXPECT_TRUE(holds(file_text(in("cut/settings.toml")), "\nchunk = " + chunk[1].str() + "\n"));
  EXPECT_LT(cut.err.find("do not fit"), cut.err.find("network: resnet20"));
  // Resumed with enough memory, the run must keep its chunks.
  const Finished resumed = resume("cut", {"--epochs", "2"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(holds(resumed.err, "of " + chunk[1].str() + " images, so that activations"));
  const Finished whole = run(with_free(4000, unasked("whole")));
  EXPECT_EQ(whole.code, 0);
  EXPECT_FALSE(holds(whole.err, "do not fit")) << whole.err;
  EXPECT_FALSE(holds(whole.err, said)) << whole.err;
}

TEST_F(TrainProgram, HelpTeachesInGroupsWithDefaults) {
  const Finished help = run({RK_BIN "/train", "--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* words :
       {"Data: which images", "Network: ", "Loss and optimizer: ", "Schedule: ", "Run: ",
        "--lr FLOAT", "=0.0001", "=resnet50", "glyphs", "--sampler SAMPLER",
        "category[:per_pair=10", "--chunk INT", "--memory INT", "--proxy-rate FLOAT",
        "--precision TEXT", "\n  train --data folder:photos --arch resnet18 --out"}) {
    EXPECT_TRUE(holds(help.out, words));
  }
  // A key of --augment that is not named is off, whatever --augment is without the flag.
  std::istringstream keys(augment_text(center_crop(224, 256)));
  for (std::string key; std::getline(keys, key, ',');) EXPECT_TRUE(holds(help.out, key));
  const GlyphOptions glyphs;
  for (const auto& [key, usual] : {std::pair{"variation", glyphs.variation},
                                   {"bend", glyphs.bend},
                                   {"place", glyphs.place},
                                   {"stretch", glyphs.stretch},
                                   {"slant", glyphs.slant},
                                   {"turn", glyphs.turn},
                                   {"warp", glyphs.warp},
                                   {"shift", glyphs.shift},
                                   {"thickness", glyphs.thickness}}) {
    EXPECT_TRUE(holds(help.out, fmt::format("{}={}", key, usual)));
  }
}

TEST_F(TrainProgram, HelpIsATableOfAHundredColumns) {
  std::istringstream lines(run({RK_BIN "/train", "--help"}).out);
  int described = 0;
  for (std::string line; std::getline(lines, line);) {
    SCOPED_TRACE(line);
    if (!line.starts_with("  -") && !line.starts_with("   ")) continue;
    EXPECT_EQ(line.find("=[]"), line.npos);
    // A description begins at column 32 or, behind a long name, in the next line.
    const std::size_t gap = line.find("  ", 2);
    if (gap == line.npos) continue;
    EXPECT_EQ(line.find_first_not_of(' ', gap), 32U);
    EXPECT_LE(line.size(), 100U);
    ++described;
  }
  EXPECT_GT(described, 60);
}

// Every mistake of a user must give one line that names it and the right exit code, and write
// nothing.
TEST_F(TrainProgram, BadInputIsOneLineAndWritesNothing) {
  folder_.classes("good/train/c", 4, 4);
  folder_.classes("good/test/t", 2, 4);
  folder_.classes("single/train/c", 4, 4);
  folder_.picture("single/train/lonely/0.png", 7);
  folder_.classes("single/test/t", 2, 4);
  folder_.classes("empty/c", 2, 4);
  folder_.write("empty/nothing/notes.txt", "x");
  folder_.classes("text/train/c", 4, 4);
  folder_.write("text/train/c1/note.jpg", "this is no picture\n");
  folder_.classes("text/test/t", 2, 4);
  folder_.classes("cut/train/c", 4, 4);
  folder_.classes("cut/test/t", 2, 4);
  const std::string picture = file_text(in("good/test/t0/0.png"));
  folder_.write("cut/test/t0/cut.png", picture.substr(0, picture.size() / 2));
  folder_.write("typo.toml", "lerning-rate = 0.1\n");
  folder_.write("broken.toml", "lr = \n");
  folder_.write("elsewhere.toml", "test-data = \"folder:not/there\"\n");
  folder_.write("text.h5", "no checkpoint\n");
  ASSERT_EQ(run(command("run")).code, 0);
  const std::string kept = file_text(in("run/last.h5"));

  const std::vector<std::string> small = {"--batch", "8", "--per-class", "2"};
  struct Case {
    std::vector<std::string> more;
    int code;
    std::string words;
  };
  const auto data = [&](const std::string& name, const std::vector<std::string>& more = {}) {
    return joined(joined({"--data", "folder:" + in(name)}, small), more);
  };
  const std::vector<Case> cases = {
      {data("nowhere"), 3, in("nowhere")},
      {data("empty"), 3, "nothing"},
      {data("single"), 3, "lonely"},
      {data("good", {"--per-class", "8"}), 3, "largest class"},
      {data("good", {"--batch", "9"}), 2, "multiple"},
      {data("good", {"--batch", "16"}), 3, "classes"},
      {data("text"), 3, "note.jpg"},
      {data("cut"), 3, "cut.png"},
      {data("good/train"), 2, "val_classes"},
      {{"--data", "floder:x"}, 2, "folder"},
      {{"--data", "glyphs:clases=3"}, 2, "classes"},
      {{"--loss", "smoth_ap"}, 2, "smooth_ap"},
      {{"--loss", "smooth_ap:tua=1"}, 2, "tau"},
      {{"--loss", "smooth_ap:tau=zero"}, 2, "tau"},
      {{"--arch", "resnet81"}, 2, "resnet18"},
      {{"--pool", "average"}, 2, "avg"},
      {{"--optimizer", "adan"}, 2, "adam"},
      {{"--schedule", "step"}, 2, "--drop-every"},
      {{"--bn", "freeze"}, 2, "frozen"},
      {{"--lr", "0"}, 2, "--lr: expected a number above 0, 1e-44 to 1e30, got 0"},
      {{"--lr", "1e99"}, 2, "--lr: expected a number above 0, 1e-44 to 1e30, got 1e99"},
      {{"--weight-decay", "1e31"}, 2, "--weight-decay: expected a number of 0 or more, at most"},
      {{"--batch", "0"}, 2, "batch"},
      {{"--epochs", "-1"}, 2, "epochs"},
      {{"--nesterov"}, 2, "sgd"},
      {{"--image-size", "64"}, 2, "--resize 16"},
      {{"--input-mean", "0.5,0.5"}, 2, "--input-mean: give one number, or red,green,blue"},
      {{"--input-mean", "grey"}, 2, "input-mean"},
      {{"--input-std", "1,1,1,1"}, 2, "--input-std: give one number, or red,green,blue"},
      {{"--input-std", "0"}, 2, "--input-std: expected a number of 1e-06 to 1000000, got 0"},
      {{"--input-std", "0.2,-1,0.2"}, 2, "--input-std: expected a number of 1e-06 to 1000000"},
      {{"--precision", "fp16"}, 2, "--precision fp16: needs a GPU"},
      {{"--precision", "fp8"}, 2, "fp32"},
      {{"--chunk", "5"}, 2, "--chunk 5: does not divide --batch 16; use 4"},
      {{"--chunk", "-1"}, 2, "chunk"},
      {{"--memory", "-1"}, 2, "memory"},
      {{"--memory", "2", "--loss", "nsl"}, 2, "--memory 2: nsl compares with its proxies"},
      {{"--loss", "rambo_map"}, 2, "takes scores and targets"},
      {{"--proxy-rate", "-1"}, 2, "proxy-rate"},
      {{"--sampler", "pq"}, 2, "did you mean pk?"},
      {{"--sampler", "pk:k=4,j=1"}, 2, "no parameter 'j'"},
      {{"--sampler", "pk:k=8", "--per-class", "4"},
       2,
       "--per-class 4 and --sampler pk:k=8 disagree"},
      {{"--sampler", "random", "--per-class", "4"}, 2, "--per-class 4: belongs to the sampler pk"},
      {{"--augment", "rotate=3"}, 2, "rotation"},
      {{"--lerning-rate", "3"}, 2, "--lerning-rate"},
      {{"--recipe", in("none.toml")}, 3, "none.toml"},
      {{"--recipe", in("typo.toml")}, 3, "'lerning-rate'"},
      {{"--recipe", in("broken.toml")}, 3, "line 1"},
      {{"--recipe", in("elsewhere.toml")},
       3,
       "no such folder; it is the --test-data of " + in("elsewhere.toml") +
           ", relative to the folder in which train is called; its comments may say where "
           "to get it; --test-data '' takes --data's own held-out classes; or give --test-data"},
      {{"--weights", in("none.h5")}, 3, "none.h5"},
      {{"--weights", in("text.h5")}, 3, "text.h5"},
      {{"--weights", in("run/last.h5"), "--arch", "resnet50"}, 2, "holds a resnet20"},
      {{"--resume", "atuo"}, 2, "auto"},
      {{"--out", in("run"), "--resume", "auto", "--arch", "resnet50"}, 3, "arch"},
      {{"--out", in("run"), "--resume", "auto", "--dim", "8"}, 3, "dim"},
      {{"--out", in("run"), "--resume", "auto", "--data", "glyphs:classes=9,size=32"}, 3, "--data"},
      {{"--out", in("text.h5")}, 3, "text.h5"},
      {{"--device", "gpu"}, 2, "cpu"},
  };
  for (const Case& each : cases) {
    const std::vector<std::string> words = joined(command("out", each.more), {"--quiet"});
    std::string what;
    for (const std::string& word : each.more) what += word + " ";
    const Finished end = run(words);
    EXPECT_EQ(end.code, each.code) << what << end.err;
    EXPECT_TRUE(holds(end.err, each.words)) << what;
    EXPECT_EQ(end.out, "") << what;
    // "going on from ..." may precede the error of a resumed run.
    const std::string error = end.err.substr(std::min(end.err.size(), end.err.find("error: ")));
    EXPECT_TRUE(error.starts_with("error: ") && std::count(error.begin(), error.end(), '\n') == 1)
        << what << end.err;
    EXPECT_FALSE(fs::exists(in("out"))) << what;
    EXPECT_EQ(file_text(in("run/last.h5")), kept) << what;
  }
}

}  // namespace
}  // namespace rk
