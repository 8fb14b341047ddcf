// What `bench` times on a GPU runs through, on the one made of the host. The times mean nothing.
#include "tests/data/temporary_folder.h"
#include "tools/bench/bench_device.h"
#include "tools/bench/bench_loss.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace rk {
namespace {

nlohmann::json bench_loss(const std::string& loss) {
  const auto command = make_bench_loss();
  Flags flags;
  command->add_options(flags);
  flags.parse({"--loss", loss, "--n", "40", "--dim", "8", "--per-class", "4", "--repeats", "2"});
  const TemporaryFolder folder;
  CommonOptions common;
  common.device = "cuda:0";
  common.threads = 2;
  common.json = (folder.path() / "loss.json").string();
  command->run(common);
  return nlohmann::json::parse(std::ifstream(common.json));
}

TEST(DeviceBench, LossesOfEveryKindOnEmbeddings) {
  for (const auto& [name, launches] : {std::pair{"smooth_ap", 3}, {"auc_ba", 7}, {"nsl", 5}}) {
    const nlohmann::json json = bench_loss(name);
    for (const char* key : {"total_ms", "gemm_ms", "copy_bytes_per_second", "peak_bytes"}) {
      EXPECT_GT(json[key].get<double>(), 0) << name << " " << key;
    }
    // Of smooth_ap: the rows, the transpose, the sum of the rows.
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
  const DeviceRankTimes times =
      time_device_ranking(gpu, parse_loss("rambo_map"), scores, targets, 2);
  EXPECT_GT(times.total.least, 0);
  EXPECT_GT(times.sort.least, 0);
  EXPECT_GT(times.bytes, 8 * 5000);
  EXPECT_GT(device_products_ms(gpu.cuda(), 100, 300, 16), 0);
}

}  // namespace
}  // namespace rk
