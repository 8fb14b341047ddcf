// Every network of the registry, on a real GPU or the emulated one.
#include "tests/cuda/gpu.h"
#include "tests/cuda/network_on_gpu.h"
#include "weights/architectures/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

namespace rk {
namespace {

void compare(NetworkCase network) {
  // Larger images, on which 50 layers compute more than rounding.
  if (rounds_as_a_card()) {
    network.batch = 16;
    network.side = std::max<std::int64_t>(network.side, 72);  // 18, 9, 5, 3
  }
  SCOPED_TRACE(fmt::format("{} {}", network.arch, name_of(network.precision)));
  compare_network_with_cpu(network, Context(8, Device{.cuda = true}));
}

// The networks of the registry whose layers are of one kind: each is in one of the suites below.
std::vector<std::string> networks(bool residual) {
  std::vector<std::string> names = network_names();
  std::erase_if(names, [&](const std::string& arch) { return is_residual(arch) != residual; });
  return names;
}

class GpuNetwork
    : public ::testing::TestWithParam<std::tuple<std::string, BatchNormMode, Precision>> {
 protected:
  void SetUp() override { require_gpu(); }
};

TEST_P(GpuNetwork, ComputesWhatTheCpuDoes) {
  const auto& [arch, mode, precision] = GetParam();
  if (!rounds_as_a_card() && arch == "resnet50" && mode == BatchNormMode::kBatch &&
      size_of(image_type(precision)) == 2) {
    GTEST_SKIP() << "16 bits through 50 layers on 12 pixels leave nothing to compare";
  }
  compare({.arch = arch, .mode = mode, .precision = precision});
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuNetwork,
    ::testing::Combine(::testing::ValuesIn(networks(true)),
                       ::testing::Values(BatchNormMode::kBatch, BatchNormMode::kRunning),
                       ::testing::ValuesIn(kPrecisions)),
    [](const auto& parameter) {
      return fmt::format("{}_{}_{}", std::get<0>(parameter.param),
                         std::get<1>(parameter.param) == BatchNormMode::kBatch ? "batch" : "frozen",
                         name_of(std::get<2>(parameter.param)));
    });

// In networks with branches, convolutions write outputs and read gradients among the channels of
// other tensors. With running statistics: batch statistics over the few pixels that small images
// leave further down turn a rounding into some tenths of a gradient. tests/golden compares those.
class GpuBranches : public ::testing::TestWithParam<std::tuple<std::string, Precision>> {
 protected:
  void SetUp() override { require_gpu(); }
};

TEST_P(GpuBranches, ComputeWhatTheCpuDoes) {
  const auto& [arch, precision] = GetParam();
  if (!rounds_as_a_card() && precision != Precision::kFp32)
    GTEST_SKIP() << "minutes of loops on the host; RK_ROUNDING_SEED=1 runs them";
  compare({.arch = arch,
           .mode = BatchNormMode::kRunning,
           .precision = precision,
           .side = arch == "inception_v3" ? 83 : 40});
}

INSTANTIATE_TEST_SUITE_P(All, GpuBranches,
                         ::testing::Combine(::testing::ValuesIn(networks(false)),
                                            ::testing::ValuesIn(kPrecisions)),
                         [](const auto& parameter) {
                           return fmt::format("{}_{}", std::get<0>(parameter.param),
                                              name_of(std::get<1>(parameter.param)));
                         });

class GpuNetworkForms : public OnGpu {};

TEST_F(GpuNetworkForms, EveryAlgorithmOfBatchNormalisation) {
  for (const BatchNormAlgorithm algorithm : {BatchNormAlgorithm::kOwn, BatchNormAlgorithm::kSums}) {
    compare({.precision = Precision::kTf32, .algorithm = algorithm});
    compare({.precision = Precision::kFp16, .algorithm = algorithm});
    compare({.precision = Precision::kBf16, .algorithm = algorithm});
  }
}

TEST_F(GpuNetworkForms, GradientsThatGraphsAddUp) {
  for (const char* arch : {"resnet18", "resnet50"}) {
    // keep_all: residuals' gradients have memory of their own.
    for (const bool keep_all : {false, true}) {
      compare({.arch = arch,
               .mode = BatchNormMode::kRunning,
               .precision = Precision::kFp16,
               .keep_all = keep_all,
               .graph_sums = true});
    }
  }
}

TEST_F(GpuNetworkForms, UnfusedLayersAndOtherPoolings) {
  compare({.fuse = false});
  compare({.mode = BatchNormMode::kRunning, .pool = PoolKind::kMax});
  compare({.mode = BatchNormMode::kRunning, .pool = PoolKind::kGem});
  compare({.mode = BatchNormMode::kRunning, .keep_all = true});
  compare({.mode = BatchNormMode::kBatch, .keep_all = true});
  compare({.mode = BatchNormMode::kBatch, .precision = Precision::kTf32, .keep_all = true});
}

}  // namespace
}  // namespace rk
