// The real programs on tiny drawn characters: what a user sees, and what is left after any
// interruption.
#include "engine/random.h"
#include "tests/data/temporary_folder.h"
#include "tests/support/child_process.h"
#include "weights/checkpoint.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kTrain = RK_BIN "/train";
const std::string kEval = RK_BIN "/eval";

class TrainProgram : public testing::Test {
 protected:
  // Glyphs of 32 pixels, 2 epochs of `batches` steps.
  std::vector<std::string> command(const std::string& out,
                                   const std::vector<std::string>& more = {},
                                   int batches = 3) const {
    std::vector<std::string> words = {
        kTrain,
        "--data",
        "glyphs:classes=8,test_classes=8,alphabets=2,test_alphabets=2,images=8,size=32",
        "--arch",
        "resnet18",
        "--dim",
        "16",
        "--image-size",
        "32",
        "--resize",
        "32",
        "--augment",
        "rotation=10,zoom_min=0.9",
        "--batch",
        "16",
        "--per-class",
        "4",
        "--batches",
        std::to_string(batches),
        "--epochs",
        "2",
        "--lr",
        "0.001",
        "--threads",
        "2",
        "--out",
        in(out)};
    for (const std::string& word : more) {  // a flag given replaces the one above
      const auto same = std::find(words.begin(), words.end(), word);
      if (word.starts_with("--") && same != words.end()) words.erase(same, same + 2);
      words.push_back(word);
    }
    return words;
  }
  std::string in(const std::string& name) const { return (folder_.path() / name).string(); }
  Finished run(const std::vector<std::string>& words) const {
    return run_to_end(words, folder_.path().string());
  }
  Finished resume(const std::string& out, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {kTrain, "--out", in(out), "--resume", "auto"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  testing::AssertionResult same_file(const std::string& a, const std::string& b) const {
    const std::string left = file_text(in(a)), right = file_text(in(b));
    if (left.empty()) return testing::AssertionFailure() << a << " is empty or missing";
    if (left == right) return testing::AssertionSuccess();
    return testing::AssertionFailure() << a << " and " << b << " differ";
  }
  std::vector<json> metrics(const std::string& out) const {
    std::vector<json> lines;
    std::istringstream text(file_text(in(out + "/metrics.jsonl")));
    for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
    return lines;
  }
  void damage(const std::string& file) const {
    std::string bytes = file_text(in(file));
    bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 1);
    std::ofstream(in(file), std::ios::binary) << bytes;
  }

  const TemporaryFolder folder_;
};

TEST_F(TrainProgram, TrainsEvaluatesAndLeavesARecord) {
  const Finished done = run(command("run", {"--json", in("result.json")}));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.out, "epoch 0/2"));
  EXPECT_TRUE(holds(done.out, "epoch 2/2  loss "));
  EXPECT_TRUE(holds(done.out, "untrained, "));
  EXPECT_TRUE(holds(done.err, "memory in MiB: parameters 42."));  // 11.2 million of 4 bytes
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

  // The settings are a recipe: the same run again.
  const Finished again =
      run({kTrain, "--recipe", in("run/settings.toml"), "--out", in("again"), "--quiet"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out + again.err, "");
  EXPECT_TRUE(same_file("run/last.h5", "again/last.h5"));

  // What `eval` says of the checkpoint is what the run said.
  const Finished eval = run({kEval, "--checkpoint", in("run/last.h5"), "--data",
                             result["settings"]["data"], "--split", "test", "--threads", "2",
                             "--json", in("eval.json"), "--save-embeddings", in("e.h5")});
  ASSERT_EQ(eval.code, 0) << eval.err;
  const json said = json::parse(file_text(in("eval.json")))["metrics"];
  EXPECT_EQ(said["map_at_r"], lines[2]["map_at_r"]);
  EXPECT_EQ(said["recall_at_1"], lines[2]["recall_at_1"]);
  const Finished saved =
      run({kEval, "--embeddings", in("e.h5"), "--threads", "2", "--json", in("saved.json")});
  ASSERT_EQ(saved.code, 0) << saved.err;
  EXPECT_EQ(json::parse(file_text(in("saved.json")))["metrics"]["map_at_r"], lines[2]["map_at_r"]);

  // Nothing is left to do, and nothing is overwritten unasked.
  EXPECT_TRUE(holds(resume("run").out, "all 2 epochs are done"));
  const Finished unasked = run(command("run"));
  EXPECT_EQ(unasked.code, 3);
  EXPECT_TRUE(holds(unasked.err, "holds a run already; --resume auto"));
}

TEST_F(TrainProgram, AnEpochLaterIsTheSameAsAllAtOnce) {
  ASSERT_EQ(run(command("straight")).code, 0);
  ASSERT_EQ(run(command("parts", {"--epochs", "1"})).code, 0);
  const Finished second = resume("parts", {"--epochs", "2"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_TRUE(holds(second.err, "epochs: 1 in the checkpoint, 2 from now on"));
  EXPECT_TRUE(same_file("straight/last.h5", "parts/last.h5"));
  EXPECT_TRUE(same_file("straight/best.h5", "parts/best.h5"));
}

// Stopped by each signal in the middle of an epoch, gone on with, and equal to the last bit.
TEST_F(TrainProgram, AnySignalSavesAndResumingIsBitEqual) {
  constexpr int kBatches = 20;
  ASSERT_EQ(run(command("straight", {}, kBatches)).code, 0);
  const std::pair<int, int> signals[] = {
      {SIGTERM, 143}, {SIGINT, 130}, {SIGUSR1, 138}, {SIGHUP, 143}};
  bool first = true, between_epochs = true;
  for (const auto& [signal, code] : signals) {
    ChildProcess child(
        first ? command("stopped", {}, kBatches)
              : std::vector<std::string>{kTrain, "--out", in("stopped"), "--resume", "auto"},
        folder_.path().string());
    const std::string under_way = first ? "epoch 0/" : "memory in MiB";
    while (child.running() && child.said_so_far().find(under_way) == std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    child.send(signal);
    const Finished stopped = child.wait();
    if (stopped.code == 0) break;  // it was through before the signal came
    EXPECT_EQ(stopped.code, code) << stopped.err;
    EXPECT_TRUE(holds(stopped.err, "--out " + in("stopped") + " --resume auto"));
    const Checkpoint saved(in("stopped/last.h5"));
    between_epochs = between_epochs && saved.run().batch == 0;
    first = false;
  }
  EXPECT_FALSE(first) << "the run was over before the first signal";
  EXPECT_FALSE(between_epochs) << "no signal met an epoch under way";
  const Finished done = resume("stopped");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(same_file("straight/last.h5", "stopped/last.h5"));
  EXPECT_TRUE(same_file("straight/best.h5", "stopped/best.h5"));
  const std::vector<json> a = metrics("straight"), b = metrics("stopped");
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i]["map_at_r"], b[i]["map_at_r"]);
}

TEST_F(TrainProgram, KilledAtAnyMomentItResumes) {
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(run(command("straight")).code, 0);
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(
                         std::chrono::steady_clock::now() - start)
                         .count();
  CounterRandom random(1, 0, 0);
  for (int kill = 0; kill < 20; ++kill) {
    ChildProcess child(command("killed", {"--resume", "auto"}), folder_.path().string());
    std::this_thread::sleep_for(std::chrono::milliseconds(random.below(whole)));
    child.send(SIGKILL);
    const Finished end = child.wait();
    ASSERT_TRUE(end.code == 128 + SIGKILL || end.code == 0) << end.code << ": " << end.err;
  }
  const Finished done = run(command("killed", {"--resume", "auto"}));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(same_file("straight/last.h5", "killed/last.h5"));
  EXPECT_TRUE(same_file("straight/best.h5", "killed/best.h5"));
  EXPECT_EQ(metrics("killed").size(), 3U);
  for (const auto& entry : fs::directory_iterator(in("killed"))) {
    EXPECT_EQ(entry.path().filename().string().find(".tmp."), std::string::npos) << entry.path();
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
  EXPECT_TRUE(holds(resumed.err, "going on from " + in("run/previous.h5") + ": epoch 1"));
  EXPECT_EQ(file_text(in("run/last.h5")), whole);
  EXPECT_EQ(Checkpoint(in("run/previous.h5")).run().epoch, 1);  // not the damaged one

  damage("run/last.h5");
  damage("run/previous.h5");
  fs::remove(in("run/best.h5"));
  const Finished none = resume("run");
  EXPECT_EQ(none.code, 3);
  EXPECT_TRUE(holds(none.err, "holds no valid checkpoint"));
}

TEST_F(TrainProgram, OneRunAFolder) {
  ChildProcess first(command("run", {}, 1000), folder_.path().string());
  while (first.running() && !fs::exists(in("run/.lock"))) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  fs::create_directories(in("elsewhere"));
  const Finished second = run_to_end(command("run", {"--resume", "auto"}), in("elsewhere"));
  EXPECT_EQ(second.code, 3);
  EXPECT_TRUE(holds(second.err, "is being written to by another run"));
  EXPECT_TRUE(first.running());
}

TEST_F(TrainProgram, DivergingKeepsTheLastGoodCheckpoint) {
  ASSERT_EQ(run(command("run", {"--epochs", "1"})).code, 0);
  const std::string before = file_text(in("run/last.h5"));
  const Finished diverged = resume("run", {"--epochs", "3", "--lr", "1e30"});
  EXPECT_EQ(diverged.code, 4);
  EXPECT_TRUE(holds(diverged.err, "diverged"));
  EXPECT_TRUE(holds(diverged.err, "the last good checkpoint is " + in("run/last.h5")));
  EXPECT_EQ(file_text(in("run/last.h5")), before);
}

TEST_F(TrainProgram, HelpTeachesInGroupsWithDefaults) {
  const Finished help = run({kTrain, "--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* words : {"Data: which images", "Network: ", "Loss and optimizer: ", "Schedule: ",
                            "Run: ", "--lr FLOAT", "=0.0001", "=resnet50", "glyphs"}) {
    EXPECT_TRUE(holds(help.out, words));
  }
}

// Everything a user can get wrong: one line that names it, the exit code, and nothing written.
TEST_F(TrainProgram, BadInputIsOneLineAndWritesNothing) {
  folder_.classes("good/train/c", 4, 4);
  folder_.classes("good/test/t", 2, 4);
  folder_.classes("single/train/c", 4, 4);
  folder_.picture("single/train/lonely/0.png", 7);
  folder_.classes("single/test/t", 2, 4);
  folder_.classes("empty/c", 2, 4);
  fs::create_directories(in("empty/nothing"));
  folder_.classes("text/train/c", 4, 4);
  folder_.write("text/train/c1/note.jpg", "this is no picture\n");
  folder_.classes("text/test/t", 2, 4);
  folder_.classes("cut/train/c", 4, 4);
  folder_.classes("cut/test/t", 2, 4);
  const std::string picture = file_text(in("good/test/t0/0.png"));
  folder_.write("cut/test/t0/cut.png", picture.substr(0, picture.size() / 2));
  folder_.write("typo.toml", "lerning-rate = 0.1\n");
  folder_.write("broken.toml", "lr = \n");
  folder_.write("text.h5", "no checkpoint\n");
  ASSERT_EQ(run(command("run")).code, 0);
  const std::string kept = file_text(in("run/last.h5"));

  const std::vector<std::string> small = {"--batch", "8", "--per-class", "2"};
  struct Case {
    std::vector<std::string> more;
    int code;
    std::string words;
  };
  const auto data = [&](const std::string& name, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"--data", "folder:" + in(name)};
    words.insert(words.end(), small.begin(), small.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
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
      {{"--lr", "0"}, 2, "lr"},
      {{"--batch", "0"}, 2, "batch"},
      {{"--epochs", "0"}, 2, "epochs"},
      {{"--nesterov"}, 2, "sgd"},
      {{"--image-size", "64"}, 2, "--resize 32"},
      {{"--augment", "rotate=3"}, 2, "rotation"},
      {{"--lerning-rate", "3"}, 2, "--lerning-rate"},
      {{"--recipe", in("none.toml")}, 3, "none.toml"},
      {{"--recipe", in("typo.toml")}, 3, "'lerning-rate'"},
      {{"--recipe", in("broken.toml")}, 3, "line 1"},
      {{"--weights", in("none.h5")}, 3, "none.h5"},
      {{"--weights", in("text.h5")}, 3, "text.h5"},
      {{"--weights", in("run/last.h5"), "--arch", "resnet50"}, 3, "layer1.0.conv3.weight"},
      {{"--resume", "atuo"}, 2, "auto"},
      {{"--out", in("run"), "--resume", "auto", "--arch", "resnet50"}, 3, "arch"},
      {{"--out", in("run"), "--resume", "auto", "--dim", "8"}, 3, "dim"},
      {{"--out", in("run"), "--resume", "auto", "--data", "glyphs:classes=9,size=32"}, 3, "--data"},
      {{"--out", in("text.h5")}, 3, "text.h5"},
      {{"--device", "gpu"}, 2, "cpu"},
  };
  for (const Case& each : cases) {
    std::vector<std::string> words = command("out", each.more);
    words.push_back("--quiet");
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
