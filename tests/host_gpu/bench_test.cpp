// What `bench` times on a GPU runs through, on the one made of the host. The times mean nothing.
#include "tests/support/made_up.h"
#include "tools/bench/bench_device.h"
#include "tools/bench/bench_loss_device.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(DeviceBench, LossesOfEveryKindOnEmbeddings) {
  for (const char* name : {"smooth_ap", "auc_ba", "proxy_anchor"}) {
    const LossSpec spec = parse_loss(name);
    const made_up::Wanted wanted{.rows = 40, .dim = 8, .classes = 10};
    const auto data = made_up::as_float(made_up::data(spec.entry->kind, wanted, 1));
    const DeviceLossTimes times = time_device_loss(0, spec, data, 2);
    EXPECT_GT(times.total.least, 0);
    EXPECT_GT(times.products.least, 0);
    EXPECT_GT(times.copy_rate, 0);
    EXPECT_GT(times.bytes, 0);
    EXPECT_GE(times.kernels, 3);
    EXPECT_FALSE(times.device_name.empty());
  }
}

TEST(DeviceBench, RankingAndProducts) {
  const CudaContext cuda(0);
  std::vector<float> scores;
  std::vector<std::uint8_t> targets;
  for (int i = 0; i < 5000; ++i) {
    scores.push_back(static_cast<float>(i * 37 % 1000) / 1000.0F);
    targets.push_back(i % 10 == 0 ? 1 : 0);
  }
  const DeviceRankTimes times =
      time_device_ranking(cuda, parse_loss("rambo_map"), scores, targets, 2);
  EXPECT_GT(times.total.least, 0);
  EXPECT_GT(times.sort.least, 0);
  EXPECT_GT(times.bytes, 8 * 5000);
  EXPECT_GT(device_products_ms(cuda, 100, 300, 16), 0);
}

}  // namespace
}  // namespace rk
