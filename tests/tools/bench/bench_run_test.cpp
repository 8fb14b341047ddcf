// What `bench` says, as its users see it.
#include "layers/onednn/convolution_block.h"
#include "tests/support/child_process.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/words.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <regex>
#include <string>
#include <vector>

namespace rk {
namespace {

using Words = std::vector<std::string>;

class BenchRun : public testing::Test {
 protected:
  Finished bench(const Words& more, const Words& before = {}) const {
    return run_to_end(joined(before, joined(joined({RK_BIN "/bench"}, more),
                                            {"--threads", "1", "--device", "cpu"})),
                      folder_.path().string());
  }

  const TemporaryFolder folder_;
};

// Most of this loss's gradient is zero, so that it takes less than the dense products of its floor.
TEST_F(BenchRun, NoShareOfAFloorIsAboveOne) {
  const Finished done = bench({"loss", "--loss", "multi_similarity", "--n", "512", "--dim", "512",
                               "--repeats", "5", "--json", "-"});
  ASSERT_EQ(done.code, 0) << done.err;
  const nlohmann::json result = nlohmann::json::parse(done.out);
  const nlohmann::json& share = result.at("share");
  const bool below = result.at("floor_ms") <= result.at("total_ms");
  EXPECT_EQ(share.is_null(), !below) << result;
  EXPECT_EQ(holds(done.err, "share - ("), !below) << done.err;
}

// With half of all pairs positive, putting them in order for the exact ROC-AUC takes three times as
// long as all the rest: what it costs must be seen.
TEST_F(BenchRun, WhatExactRocAucCostsIsSeen) {
  const Finished done = bench(
      {"eval", "--n", "4000", "--classes", "2", "--dim", "8", "--repeats", "3", "--json", "-"});
  ASSERT_EQ(done.code, 0) << done.err;
  const nlohmann::json result = nlohmann::json::parse(done.out);
  const auto ms = [&](const char* key) { return result.at(key).get<double>(); };
  EXPECT_LT(ms("binned_ms"), 0.8 * ms("metrics_ms")) << result;
  EXPECT_LE(ms("metrics_ms"), ms("total_ms")) << result;
  EXPECT_LT(ms("gemm_ms"), ms("binned_ms")) << result;
}

TEST_F(BenchRun, ARankingIsTimedWithAndWithoutItsLoss) {
  const Finished done =
      bench({"rank", "--loss", "rambo_map", "--n", "50000", "--repeats", "2", "--json", "-"});
  ASSERT_EQ(done.code, 0) << done.err;
  const nlohmann::json result = nlohmann::json::parse(done.out);
  EXPECT_GT(result.at("sort_ms"), 0) << result;
  EXPECT_NE(result.at("total_ms"), result.at("sort_ms")) << result;
  const Finished pairs = bench({"rank", "--loss", "fastap", "--n", "50"});
  EXPECT_EQ(pairs.code, 2) << pairs.err;
  EXPECT_TRUE(holds(pairs.err, "bench rank: fastap ranks no scores; use `bench loss`"));
  EXPECT_EQ(bench({"rank", "--n", "2", "--repeats", "1"}).code, 0);
  EXPECT_EQ(bench({"rank", "--n", "1", "--repeats", "1"}).code, 2);
}

TEST_F(BenchRun, AnImageTooSmallForTheNetworkIsWrongUsage) {
  const Finished refused = bench({"step", "--arch", "inception_v3", "--image-size", "64"});
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_TRUE(holds(refused.err, "--image-size 64: inception_v3 takes images of 75 or more"));
}

TEST_F(BenchRun, AProcessorWithoutDirectConvolutionsIsSaidToBeSlow) {
  const Words step = {"step", "--arch",  "resnet20", "--image-size", "8", "--dim",
                      "4",    "--batch", "4",        "--repeats",    "1"};
  const Finished slow = bench(step, {"/usr/bin/env", "ONEDNN_MAX_CPU_ISA=SSE41"});
  EXPECT_EQ(slow.code, 0) << slow.err;
  const std::string said = "note: this processor has no AVX2";
  EXPECT_TRUE(holds(slow.err, said));
  EXPECT_EQ(slow.err.find(said), slow.err.rfind(said)) << "said twice";
  if (convolution_block() == 0) GTEST_SKIP() << "so it is here";
  EXPECT_FALSE(holds(bench(step).err, said));
}

// `bench step` has no --chunk; whoever follows its advice must get a result.
TEST_F(BenchRun, ABatchThatDoesNotFitIsAnsweredByOneThatDoes) {
  folder_.write("meminfo", "MemTotal: 9999999 kB\nMemAvailable: 700000 kB\n");
  const Words little = {"/usr/bin/env", std::string("LD_PRELOAD=") + RK_FAKE_MEMINFO,
                        "RK_FAKE_MEMINFO_FILE=" + folder_.in("meminfo")};
  const auto step = [&](const std::string& batch) {
    return bench({"step", "--arch", "resnet20", "--image-size", "64", "--dim", "16", "--batch",
                  batch, "--repeats", "1"},
                 little);
  };
  const Finished refused = step("512");
  EXPECT_EQ(refused.code, 5) << refused.err;
  std::smatch advised;
  ASSERT_TRUE(std::regex_search(
      refused.err, advised,
      std::regex("too small for --batch 512 at --image-size 64; use --batch ([0-9]+)\n")))
      << refused.err;
  EXPECT_FALSE(holds(refused.err, "--chunk"));
  const Finished done = step(advised[1].str());
  EXPECT_EQ(done.code, 0) << done.err;
}

// With a class for each row there would be nothing to rank, in whose time all metrics would be.
TEST_F(BenchRun, ClassesHaveSomethingToFind) {
  const Words small = {"eval", "--n", "600", "--dim", "8", "--repeats", "1", "--json", "-"};
  const auto with = [&](const Words& more) { return bench(joined(small, more)); };
  const Finished open = with({});
  ASSERT_EQ(open.code, 0) << open.err;
  EXPECT_EQ(nlohmann::json::parse(open.out)["classes"], 600 * 11316 / 60502);
  EXPECT_EQ(with({"--classes", "300"}).code, 0);
  const Finished many = with({"--classes", "301"});
  EXPECT_EQ(many.code, 2);
  EXPECT_TRUE(holds(many.err,
                    "--classes 301: in so many, 600 rows have nothing to find; give at "
                    "most 300"));
  EXPECT_EQ(with({"--classes", "400", "--gallery", "400"}).code, 0);
  EXPECT_EQ(with({"--classes", "401", "--gallery", "400"}).code, 2);
}

}  // namespace
}  // namespace rk
