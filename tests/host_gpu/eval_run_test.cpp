// `eval` with a network on the emulated GPU, against the same on the CPU.
#include "engine/base/error.h"
#include "engine/group/process_group.h"
#include "tests/data/picture_folder.h"
#include "tests/data/rotated_png.h"
#include "tests/host_gpu/run_command.h"
#include "tests/support/folder_test.h"
#include "tests/support/messages.h"
#include "tests/support/words.h"
#include "tools/eval/eval_command.h"
#include "tools/train/train_command.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rk {
namespace {

const std::string kData = "glyphs:classes=8,test_classes=6,alphabets=2,images=8,size=16";

class GpuEvalRun : public FolderTest<PictureFolder> {
 protected:
  void SetUp() override {
    run(*make_train(), "cpu",
        {"--data",    kData,      "--arch", "resnet20", "--dim", "16",       "--image-size",
         "16",        "--resize", "16",     "--batch",  "16",    "--epochs", "1",
         "--batches", "2",        "--loss", "fastap",   "--out", in("run")});
  }

  nlohmann::json run(Command& command, const std::string& device,
                     const std::vector<std::string>& words) {
    CommonOptions common;
    const std::unique_ptr<ProcessGroup> alone = group_of_one();
    common.processes = alone.get();
    common.program = "test";
    common.device = device;
    common.threads = 2;
    common.quiet = true;
    common.force = true;
    common.json = in(device + ".json");
    return run_command(command, common, words);
  }
  struct Both {
    nlohmann::json gpu, cpu;
  };
  Both eval(const std::vector<std::string>& words, const std::vector<std::string>& on_gpu = {}) {
    return {run(*make_eval(), "cuda:0", joined(words, on_gpu)), run(*make_eval(), "cpu", words)};
  }
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
  run(*make_eval(), "cuda:0",
      {"--checkpoint", in("run/best.h5"), "--data", kData, "--report", in("gpu.html")});
  EXPECT_TRUE(holds(file_text(in("gpu.html")), "the host as a GPU, "));
  EXPECT_NEAR(all.gpu["metrics"]["nmi"].get<double>(), all.cpu["metrics"]["nmi"].get<double>(),
              0.1);
}

TEST_F(GpuEvalRun, TwoRunsSideBySide) {
  const Both both = eval({"--compare", in("run"), in("run/best.h5"), "--data", kData});
  for (std::size_t r = 0; r < 2; ++r) {
    expect_same_metrics(both.gpu["runs"][r]["metrics"], both.cpu["runs"][r]["metrics"], 0.01);
  }
}

// What one device found for each query, against the other: every candidate's score, and an order
// that differs only where scores do no more than that. `tolerance` is that of a score.
void expect_same_answers(const nlohmann::json& gpu, const nlohmann::json& cpu, double tolerance) {
  ASSERT_EQ(gpu.size(), cpu.size());
  for (std::size_t q = 0; q < cpu.size(); ++q) {
    const std::string query = cpu[q]["query"];
    EXPECT_EQ(gpu[q]["query"], query);
    std::map<int, double> scores;
    for (const nlohmann::json& each : cpu[q]["results"]) scores[each["row"]] = each["score"];
    const nlohmann::json& found = gpu[q]["results"];
    ASSERT_EQ(found.size(), scores.size()) << query;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const int row = found[i]["row"];
      ASSERT_TRUE(scores.contains(row)) << query << ", row " << row;
      EXPECT_NEAR(found[i]["score"].get<double>(), scores[row], tolerance) << query;
      EXPECT_NEAR(cpu[q]["results"][i]["score"].get<double>(), scores[row], 2 * tolerance) << query;
    }
  }
}

// Every picture of the index is a result, so that none can be missing because another took its
// place by a rounding. One query is stored rotated, as the network's training turned them.
TEST_F(GpuEvalRun, PicturesAreLookedUpInAnIndex) {
  folder_.classes("pics/train/c", 3, 4);
  folder_.classes("pics/test/t", 3, 4);
  folder_.write("rotated.png", rotated_png(file_text(in("pics/test/t1/2.png"))));
  const std::string pictures = "folder:" + in("pics") + ",exif=turn";
  run(*make_train(), "cpu",
      {"--data", pictures, "--arch", "resnet20", "--dim", "16", "--image-size", "16", "--resize",
       "16", "--batch", "12", "--epochs", "1", "--loss", "fastap", "--out", in("turned")});
  const std::string network = in("turned/best.h5");
  for (const char* device : {"cuda:0", "cpu"}) {
    run(*make_eval(), device,
        {"--checkpoint", network, "--data", pictures, "--save-embeddings",
         in(device + std::string(".h5"))});
  }
  const auto search = [&](const std::string& index, const std::vector<std::string>& on_gpu = {}) {
    const Both both = eval({"--checkpoint", network, "--index", in(index), "--topk", "12",
                            "--query", in("pics/test/t0"), in("pics/test/t1/2.png"),
                            in("rotated.png"), "--report", in("search.html")},
                           on_gpu);
    EXPECT_EQ(both.gpu["device"], "cuda:0");
    EXPECT_EQ(both.cpu["device"], "cpu");
    EXPECT_EQ(both.gpu["precision"], on_gpu.empty() ? "fp32" : on_gpu.back());
    EXPECT_EQ(both.gpu["queries"].size(), 6U);
    return both;
  };
  for (const char* index : {"cpu.h5", "cuda:0.h5"}) {
    const Both both = search(index);
    expect_same_answers(both.gpu["queries"], both.cpu["queries"], 1e-5);
    for (const nlohmann::json& device : {both.gpu, both.cpu}) {
      for (std::size_t q = 0; q < 5; ++q) {
        const nlohmann::json& first = device["queries"][q]["results"][0];
        EXPECT_EQ(first["path"], device["queries"][q]["query"]);
        EXPECT_NEAR(first["score"].get<double>(), 1, 1e-5);
      }
      // The same pixels, turned, are another picture.
      EXPECT_LT(device["queries"][5]["results"][0]["score"].get<double>(), 1 - 1e-3);
    }
  }
  const Both half = search("cuda:0.h5", {"--precision", "fp16"});
  expect_same_answers(half.gpu["queries"], half.cpu["queries"], 0.01);
  EXPECT_NE(half.gpu["queries"], search("cuda:0.h5").gpu["queries"]);
}

}  // namespace
}  // namespace rk
