// `eval` with a network on the emulated GPU, against the same on the CPU.
#include "engine/base/error.h"
#include "engine/group/process_group.h"
#include "tests/support/temporary_folder.h"
#include "tools/eval/eval_command.h"
#include "tools/train/train_command.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace rk {
namespace {

const std::string kData = "glyphs:classes=8,test_classes=6,alphabets=2,images=8,size=16";

class GpuEvalRun : public ::testing::Test {
 protected:
  void SetUp() override {
    run(*make_train(), "cpu",
        {"--data",    kData,      "--arch", "resnet20", "--dim", "16",       "--image-size",
         "16",        "--resize", "16",     "--batch",  "16",    "--epochs", "1",
         "--batches", "2",        "--loss", "fastap",   "--out", in("run")});
  }
  std::string in(const std::string& name) const { return (folder_.path() / name).string(); }

  // Runs the command and returns what it writes to --json.
  nlohmann::json run(Command& command, const std::string& device,
                     const std::vector<std::string>& words) {
    Flags flags;
    CommonOptions common;
    const std::unique_ptr<ProcessGroup> alone = group_of_one();
    common.processes = alone.get();
    common.program = "test";
    common.device = device;
    common.threads = 2;
    common.quiet = true;
    common.force = true;
    common.json = in(device + ".json");
    flags.add("--seed", common.seed, "");
    flags.add("--threads", common.threads, "");
    flags.add("--json", common.json, "");
    flags.add("--device", common.device, "");
    command.add_options(flags);
    flags.parse(words);
    EXPECT_TRUE(command.runs_on_cuda());
    command.run(common);
    std::ifstream file(common.json);
    return file ? nlohmann::json::parse(file) : nlohmann::json();
  }
  struct Both {
    nlohmann::json gpu, cpu;
  };
  Both eval(const std::vector<std::string>& words, const std::vector<std::string>& on_gpu = {}) {
    std::vector<std::string> more = words;
    more.insert(more.end(), on_gpu.begin(), on_gpu.end());
    return {run(*make_eval(), "cuda:0", more), run(*make_eval(), "cpu", words)};
  }

  TemporaryFolder folder_;
};

void expect_same_metrics(const nlohmann::json& gpu, const nlohmann::json& cpu, double tolerance) {
  for (const char* key : {"recall_at_1", "map_at_r", "map", "r_precision", "roc_auc", "pos_mean"}) {
    EXPECT_NEAR(gpu[key].get<double>(), cpu[key].get<double>(), tolerance) << key;
  }
}

TEST_F(GpuEvalRun, ANetworkEmbedsThere) {
  const std::vector<std::string> words = {"--checkpoint", in("run/best.h5"), "--data", kData};
  // Two rows of nearly equal scores may change places by a rounding.
  const Both all = eval(words);
  EXPECT_EQ(all.gpu["device"], "cuda:0");
  expect_same_metrics(all.gpu["metrics"], all.cpu["metrics"], 0.01);
  const Both half = eval(words, {"--precision", "fp16"});
  EXPECT_EQ(half.gpu["precision"], "fp16");
  expect_same_metrics(half.gpu["metrics"], half.cpu["metrics"], 0.05);
  EXPECT_THROW(run(*make_eval(), "cpu",
                   {"--checkpoint", in("run/best.h5"), "--data", kData, "--precision", "fp16"}),
               UsageError);
}

// With every option that computes something beside the metrics.
TEST_F(GpuEvalRun, WithEverythingThatGoesWithIt) {
  const Both all =
      eval({"--checkpoint", in("run/best.h5"), "--data", kData, "--save-embeddings", in("rows.h5"),
            "--save-neighbours", in("found.h5"), "--report", in("page.html"), "--nmi",
            "--confidence", "0.9", "--resample", "queries", "--per-class"});
  expect_same_metrics(all.gpu["metrics"], all.cpu["metrics"], 0.01);
  EXPECT_NEAR(all.gpu["metrics"]["nmi"].get<double>(), all.cpu["metrics"]["nmi"].get<double>(),
              0.1);
}

TEST_F(GpuEvalRun, TwoRunsSideBySide) {
  const Both both = eval({"--compare", in("run"), in("run/best.h5"), "--data", kData});
  for (std::size_t r = 0; r < 2; ++r) {
    expect_same_metrics(both.gpu["runs"][r]["metrics"], both.cpu["runs"][r]["metrics"], 0.01);
  }
}

}  // namespace
}  // namespace rk
