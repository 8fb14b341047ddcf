// All that `bench` times on a GPU must run on the emulated one. The times mean nothing.
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/system/signals.h"
#include "tests/host_gpu/cudnn/engines.h"
#include "tests/host_gpu/run_command.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/words.h"
#include "tools/bench/bench_loss.h"
#include "tools/bench/device_products.h"
#include "tools/bench/rank_timing.h"
#include "tools/bench/step/bench_step.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace rk {
namespace {

nlohmann::json run(const std::unique_ptr<Command>& command, const std::vector<std::string>& words,
                   const std::string& json, int threads = 2) {
  CommonOptions common;
  common.device = "cuda:0";
  common.threads = threads;
  common.json = json;
  return run_command(*command, common, words);
}
nlohmann::json run(const std::unique_ptr<Command>& command, const std::vector<std::string>& words) {
  const TemporaryFolder folder;
  return run(command, words, folder.in("bench.json"));
}
nlohmann::json bench_loss(const std::string& loss) {
  return run(make_bench_loss(),
             {"--loss", loss, "--n", "40", "--dim", "8", "--per-class", "4", "--repeats", "2"});
}
std::vector<std::string> small_step(const std::vector<std::string>& more) {
  return joined(
      {"--arch", "resnet20", "--batch", "4", "--image-size", "16", "--dim", "8", "--repeats", "1"},
      more);
}
nlohmann::json bench_step(const std::vector<std::string>& more) {
  return run(make_bench_step(), small_step(more));
}

TEST(DeviceBench, LossesOfEveryKindOnEmbeddings) {
  for (const auto& [name, launches] : {std::pair{"smooth_ap", 3}, {"auc_ba", 7}, {"nsl", 5}}) {
    const nlohmann::json json = bench_loss(name);
    for (const char* key : {"total_ms", "gemm_ms", "copy_bytes_per_second", "peak_bytes"}) {
      EXPECT_GT(json[key].get<double>(), 0) << name << " " << key;
    }
    // smooth_ap's three: the rows, the transpose, the sum of the rows.
    EXPECT_EQ(json["kernels"], launches) << name;
    EXPECT_EQ(json["device_name"], "the host as a GPU");
  }
}

TEST(DeviceBench, RankingAndProducts) {
  const Context gpu(1, Device{.cuda = true});
  std::vector<float> scores;
  std::vector<std::uint8_t> targets;
  for (int i = 0; i < 5000; ++i) {
    scores.push_back(static_cast<float>(i * 37 % 1000) / 1000.0F);
    targets.push_back(i % 10 == 0 ? 1 : 0);
  }
  const RankTimes times = time_ranking(gpu, parse_loss("rambo_map"), scores, targets, 2);
  EXPECT_GT(times.total.least, 0);
  EXPECT_GT(times.sort.least, 0);
  EXPECT_GT(times.bytes, 8 * 5000);
  EXPECT_GT(device_products_ms(gpu.cuda(), 100, 300, 16), 0);
}

TEST(DeviceBench, FusionsAreALineEach) {
  ::testing::internal::CaptureStdout();
  const nlohmann::json json = bench_step({"--precision", "fp16", "--fusions"});
  const std::string printed = ::testing::internal::GetCapturedStdout();
  for (const nlohmann::json& line : json["fusions"]) {
    EXPECT_TRUE(holds(printed, line["in_place_of"].get<std::string>()));
    EXPECT_GT(line["count"], 0);
    EXPECT_GT(line["saved_ms"].get<double>(), 0);
    const auto value = [&](const char* key) { return line[key].get<double>(); };
    EXPECT_GT(value("parts_ms"), 0);
    EXPECT_GT(value("fused_ms"), 0);
    EXPECT_NEAR(value("gain_ms"),
                value("count") * (value("parts_ms") + value("saved_ms") - value("fused_ms")), 1e-9);
  }
  EXPECT_GT(json["fusions"].size(), 10U);
  EXPECT_EQ(json["all_fusions"], true);
  EXPECT_TRUE(holds(printed, "fusing only where it gains spares "));
  EXPECT_FALSE(holds(printed, "stopped after"));
}

// In a process of its own, because a signal that came stays. It comes while the first convolution
// with the sums of its output is timed.
TEST(DeviceBench, ASignalLeavesTheFusionsThatWereTimed) {
  const TemporaryFolder folder;
  const std::string path = folder.in("fusions.json");
  ::testing::internal::CaptureStdout();
  const pid_t child = ::fork();
  if (child == 0) {
    host_gpu::refuse_graphs([](const Graph& graph) {
      using enum Graph::Op;
      if (graph.has(kConv) && graph.has(kChannelSums) && !graph.has(kRelu)) take_signal(SIGTERM);
      return false;
    });
    try {
      run(make_bench_step(), small_step({"--precision", "fp16", "--fusions"}), path, 1);
    } catch (const Interrupted&) {
      ::_exit(interrupted_exit_code());
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  const std::string printed = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 128 + SIGTERM);
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(path));
  EXPECT_GT(json["step_ms"], 0);
  EXPECT_EQ(json["all_fusions"], false);
  const std::size_t count = json["fusions"].size();
  EXPECT_GT(count, 0U);
  EXPECT_LT(count, 10U);
  const std::size_t sums = printed.find("fusing only where it gains spares ");
  ASSERT_NE(sums, std::string::npos) << printed;
  EXPECT_NE(printed.find(fmt::format("; stopped after {}", counted(count, "fusion")), sums),
            std::string::npos)
      << printed;
}

TEST(DeviceBench, FusionsAreOfHalfsAndTheBatchsStatistics) {
  for (const auto& [precision, bn] :
       {std::pair{"bf16", "train"}, {"fp32", "train"}, {"fp16", "frozen"}}) {
    EXPECT_THROW(bench_step({"--precision", precision, "--bn", bn, "--fusions"}), UsageError);
  }
}

}  // namespace
}  // namespace rk
