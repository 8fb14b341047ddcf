// Batch normalisation against its definition in double: outputs, running statistics and what each
// mode leaves unchanged.
#include "layers/batchnorm.h"
#include "engine/base/integers.h"

#include "tests/support/node_harness.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace rk {
namespace {

constexpr std::int64_t kChannels = 32;
const Shape kShape{3, 5, 4, kChannels};
constexpr std::int64_t kPixels = 3 * 5 * 4;

struct Setup {
  BatchNormOptions options;
  std::int64_t block = 0;
  bool residual = false;
};

struct Layer {
  explicit Layer(const Setup& setup, double offset = 0.0)
      : harness(2, sources(setup), [setup](Program& p, const std::vector<TensorId>& ids) {
          BatchNormOptions options = setup.options;
          if (setup.residual) options.residual = ids[1];
          return batchnorm(p, ids[0], "bn", options);
        }) {
    Parameters& parameters = harness.parameters();
    const ParameterId gamma_id = parameters.declare("bn.weight", Shape{kChannels}, {});
    const ParameterId beta_id = parameters.declare("bn.bias", Shape{kChannels}, {});
    gamma = noise(kChannels, 1);
    beta = noise(kChannels, 2);
    mean = noise(kChannels, 3);
    variance = noise(kChannels, 4);
    for (float& v : variance) v = 1.0F + 0.5F * v;
    std::ranges::copy(gamma, parameters.value(gamma_id));
    std::ranges::copy(beta, parameters.value(beta_id));
    std::ranges::copy(mean, running("running_mean"));
    std::ranges::copy(variance, running("running_var"));
    inputs.push_back(noise(kShape.elements(), 5));
    for (float& v : inputs[0]) v = static_cast<float>(v + offset);
    if (setup.residual) inputs.push_back(noise(kShape.elements(), 6));
    output = harness.forward(inputs);
  }

  static std::vector<NodeHarness::Source> sources(const Setup& setup) {
    return std::vector<NodeHarness::Source>(setup.residual ? 2 : 1,
                                            {.shape = kShape, .block = setup.block});
  }
  float* running(const std::string& which) {
    Parameters& p = harness.parameters();
    return p.buffer(p.declare_buffer("bn." + which, kChannels, 0.0F));
  }
  std::int64_t batches() {
    Parameters& p = harness.parameters();
    return p.counter(p.declare_counter("bn.num_batches_tracked"));
  }

  NodeHarness harness;
  std::vector<float> gamma, beta, mean, variance, output;
  std::vector<std::vector<float>> inputs;
};

struct Statistics {
  double mean = 0, variance = 0;  // divided by n
};

Statistics statistics(const std::vector<float>& x, std::int64_t channel) {
  Statistics s;
  for (std::int64_t p = 0; p < kPixels; ++p) s.mean += x[at(p * kChannels + channel)];
  s.mean /= kPixels;
  for (std::int64_t p = 0; p < kPixels; ++p) {
    const double d = x[at(p * kChannels + channel)] - s.mean;
    s.variance += d * d;
  }
  s.variance /= kPixels;
  return s;
}

class BatchNormModes : public ::testing::TestWithParam<std::tuple<BatchNormMode, bool, bool, int>> {
};

TEST_P(BatchNormModes, FollowsItsDefinition) {
  const auto [mode, relu, residual, block] = GetParam();
  Layer layer({{.mode = mode, .epsilon = 1e-3, .momentum = 0.3, .relu = relu}, block, residual});
  for (std::int64_t c = 0; c < kChannels; ++c) {
    const auto k = static_cast<std::size_t>(c);
    Statistics s = statistics(layer.inputs[0], c);
    if (mode == BatchNormMode::kRunning) s = Statistics{layer.mean[k], layer.variance[k]};
    for (std::int64_t p = 0; p < kPixels; ++p) {
      const auto i = static_cast<std::size_t>(p * kChannels + c);
      double y = layer.gamma[k] * (layer.inputs[0][i] - s.mean) / std::sqrt(s.variance + 1e-3) +
                 layer.beta[k];
      if (residual) y += layer.inputs[1][i];
      if (relu) y = std::max(y, 0.0);
      // A few float32 roundings of values up to 4.
      ASSERT_NEAR(layer.output[i], y, 2e-6) << "channel " << c;
    }
  }
}

TEST_P(BatchNormModes, RunningStatisticsMoveOnlyWithTheBatch) {
  const auto [mode, relu, residual, block] = GetParam();
  Layer layer({{.mode = mode, .epsilon = 1e-3, .momentum = 0.3, .relu = relu}, block, residual});
  layer.harness.backward(noise(kShape.elements(), 9));
  const float* mean = layer.running("running_mean");
  const float* variance = layer.running("running_var");
  EXPECT_EQ(layer.batches(), mode == BatchNormMode::kBatch ? 1 : 0);
  for (std::int64_t c = 0; c < kChannels; ++c) {
    const auto k = static_cast<std::size_t>(c);
    if (mode == BatchNormMode::kRunning) {
      EXPECT_EQ(mean[c], layer.mean[k]);
      EXPECT_EQ(variance[c], layer.variance[k]);
      continue;
    }
    const Statistics s = statistics(layer.inputs[0], c);
    const double unbiased = s.variance * kPixels / (kPixels - 1);
    EXPECT_NEAR(mean[c], 0.7 * layer.mean[k] + 0.3 * s.mean, 2e-7);  // two roundings below 1
    EXPECT_NEAR(variance[c], 0.7 * layer.variance[k] + 0.3 * unbiased, 3e-7);
  }
}

std::string mode_name(const ::testing::TestParamInfo<BatchNormModes::ParamType>& tested) {
  const auto [mode, relu, residual, block] = tested.param;
  return fmt::format("{}{}{}{}", mode == BatchNormMode::kBatch ? "batch" : "running",
                     relu ? "_relu" : "", residual ? "_add" : "",
                     block == 0 ? "_nhwc" : fmt::format("_blocks_of_{}", block));
}

INSTANTIATE_TEST_SUITE_P(
    BatchNorm, BatchNormModes,
    ::testing::Combine(::testing::Values(BatchNormMode::kBatch, BatchNormMode::kRunning),
                       ::testing::Bool(), ::testing::Bool(), ::testing::Values(0, 8, 16)),
    mode_name);

// E[x^2] - E[x]^2 in one float32 pass would be wrong by far more: 1000^2 leaves no digit for a
// variance of 1/3.
TEST(BatchNorm, ALargeMeanCostsNoAccuracy) {
  Layer layer({{.mode = BatchNormMode::kBatch, .momentum = 1.0}, 16, false}, 1000.0);
  const float* variance = layer.running("running_var");
  for (std::int64_t c = 0; c < kChannels; ++c) {
    const Statistics s = statistics(layer.inputs[0], c);
    EXPECT_NEAR(variance[c], s.variance * kPixels / (kPixels - 1), 1e-5 * s.variance);
  }
}

// A channel that is not finite must be seen in whatever is computed from it, and in no other.
TEST(BatchNorm, WhatIsNotFiniteStaysSoInItsChannel) {
  constexpr std::int64_t kBad = 7;
  for (const float bad : {NAN, INFINITY}) {
    for (const std::int64_t block : {0, 16}) {
      Layer layer({{.mode = BatchNormMode::kBatch, .momentum = 0.3}, block, false});
      layer.inputs[0][5 * kChannels + kBad] = bad;
      layer.output = layer.harness.forward(layer.inputs);
      for (std::int64_t c = 0; c < kChannels; ++c) {
        EXPECT_EQ(std::isfinite(layer.running("running_mean")[c]), c != kBad) << c;
        EXPECT_EQ(std::isfinite(layer.running("running_var")[c]), c != kBad) << c;
        for (std::int64_t p = 0; p < kPixels; ++p) {
          const float y = layer.output[at(p * kChannels + c)];
          ASSERT_EQ(std::isfinite(y), c != kBad) << "channel " << c << ", pixel " << p;
        }
      }
    }
  }
}

// gamma's and beta's gradients with running statistics: dgamma = sum dy xhat, dbeta = sum dy.
TEST(BatchNorm, FrozenStatisticsStillTeachGammaAndBeta) {
  Layer layer({{.mode = BatchNormMode::kRunning}, 16, false});
  const std::vector<float> dy = noise(kShape.elements(), 8);
  const auto dx = layer.harness.backward(dy);
  Parameters& parameters = layer.harness.parameters();
  const float* d_gamma = parameters.gradient(parameters.declare("bn.weight", Shape{kChannels}, {}));
  const float* d_beta = parameters.gradient(parameters.declare("bn.bias", Shape{kChannels}, {}));
  for (std::int64_t c = 0; c < kChannels; ++c) {
    const auto k = static_cast<std::size_t>(c);
    const double inv_std = 1 / std::sqrt(layer.variance[k] + 1e-5);
    double gamma = 0, beta = 0;
    for (std::int64_t p = 0; p < kPixels; ++p) {
      const auto i = static_cast<std::size_t>(p * kChannels + c);
      gamma += dy[i] * (layer.inputs[0][i] - layer.mean[k]) * inv_std;
      beta += dy[i];
      ASSERT_NEAR(dx[0][i], dy[i] * layer.gamma[k] * inv_std, 3e-7);
    }
    EXPECT_NEAR(d_gamma[c], gamma, 5e-6);  // sums of 60 float32 terms
    EXPECT_NEAR(d_beta[c], beta, 5e-6);
  }
}

}  // namespace
}  // namespace rk
