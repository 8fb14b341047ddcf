// Which graphs a network asks the GPU's library for, and which fusions remain in which precision.
#include "layers/graphs/graph.h"

#include "engine/device/context.h"
#include "layers/networks/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace rk {
namespace {

std::vector<GraphSpec> graphs(const std::string& arch, bool training, BatchNormMode mode,
                              Precision precision) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {.gradients = training});
  NetworkSpec network;
  network.arch = arch;
  network.batchnorm = BatchNormMode::kRunning;
  build_network(program, network, 4, 224, 224);
  return graphs_of(program, mode, precision);
}

std::ptrdiff_t count(const std::vector<GraphSpec>& specs, GraphKind kind) {
  return std::ranges::count(specs, kind, &GraphSpec::kind);
}

// He et al. 2016, table 1, worked out by hand: the shapes of convolutions that differ.
TEST(GpuGraph, DistinctConvolutionsOfTheNetworks) {
  const auto training = BatchNormMode::kBatch;
  for (const Precision precision : kPrecisions) {
    SCOPED_TRACE(name_of(precision));
    const auto small = graphs("resnet18", true, training, precision);
    EXPECT_EQ(count(small, GraphKind::kConvolution), 11);
    EXPECT_EQ(count(small, GraphKind::kWeightGradient), 11);
    const auto large = graphs("resnet50", true, training, precision);
    EXPECT_EQ(count(large, GraphKind::kConvolution), 23);
    EXPECT_EQ(count(large, GraphKind::kWeightGradient), 23);
  }
}

TEST(GpuGraph, EvaluationIsForwardAloneAndFolded) {
  for (const GraphSpec& spec :
       graphs("resnet50", false, BatchNormMode::kRunning, Precision::kFp16)) {
    EXPECT_TRUE(spec.kind == GraphKind::kConvolutionBias ||
                spec.kind == GraphKind::kConvolutionBiasRelu ||
                spec.kind == GraphKind::kConvolutionBiasAddRelu)
        << spec.text();
  }
}

// A basic block's first convolution, with an identity shortcut, adds its input's gradient to the
// shortcut's and hides it behind the ReLU of the block before; where the shortcut is a convolution,
// recorded first, that one adds. Images have no gradient.
TEST(GpuGraph, InputGradientsOfFrozenTraining) {
  std::set<std::string> texts;
  for (const GraphSpec& s : graphs("resnet18", true, BatchNormMode::kRunning, Precision::kBf16)) {
    if (s.text().find("dgrad") != std::string::npos) texts.insert(s.text());
  }
  const std::set<std::string> expected = {
      // With a stride nothing is fused.
      // layer1: behind the pool there is no ReLU to hide behind.
      "bf16 dgrad+add 4x56x56x64 -> 64, 3x3/1",
      "bf16 dgrad+add+drelu 4x56x56x64 -> 64, 3x3/1",
      "bf16 dgrad+drelu 4x56x56x64 -> 64, 3x3/1",
      "bf16 dgrad 4x56x56x64 -> 128, 3x3/2",
      "bf16 dgrad 4x56x56x64 -> 128, 1x1/2",
      "bf16 dgrad+add+drelu 4x28x28x128 -> 128, 3x3/1",
      "bf16 dgrad+drelu 4x28x28x128 -> 128, 3x3/1",
      "bf16 dgrad 4x28x28x128 -> 256, 3x3/2",
      "bf16 dgrad 4x28x28x128 -> 256, 1x1/2",
      "bf16 dgrad+add+drelu 4x14x14x256 -> 256, 3x3/1",
      "bf16 dgrad+drelu 4x14x14x256 -> 256, 3x3/1",
      "bf16 dgrad 4x14x14x256 -> 512, 3x3/2",
      "bf16 dgrad 4x14x14x256 -> 512, 1x1/2",
      "bf16 dgrad+add+drelu 4x7x7x512 -> 512, 3x3/1",
      "bf16 dgrad+drelu 4x7x7x512 -> 512, 3x3/1",
  };
  EXPECT_EQ(texts, expected);
}

TEST(GpuGraph, BatchStatisticsMaskInTheNormalisation) {
  const auto specs = graphs("resnet50", true, BatchNormMode::kBatch, Precision::kFp16);
  EXPECT_EQ(count(specs, GraphKind::kInputGradientRelu), 0);
  EXPECT_EQ(count(specs, GraphKind::kInputGradientAddRelu), 0);
  EXPECT_EQ(count(specs, GraphKind::kConvolutionSums), 23);
  // Outputs of a stage's last convolutions and of its shortcut: one shape a stage each.
  EXPECT_EQ(count(specs, GraphKind::kBatchNormAddRelu), 4);
  EXPECT_EQ(count(specs, GraphKind::kBatchNorm), 4);
}

// The key of a plan: what tells two graphs apart is in it.
TEST(GpuGraph, TextsOfConvolutions) {
  GraphSpec spec{.precision = Precision::kFp16, .n = 2, .c = 3, .h = 9, .w = 8, .out_channels = 5};
  EXPECT_EQ(spec.text(), "fp16 conv 2x9x8x3 -> 5, 1x1/1");
  spec.kernel = {1, 3};
  spec.stride = {1, 2};
  EXPECT_EQ(spec.text(), "fp16 conv 2x9x8x3 -> 5, 1x3/1x2, padding 0x0");
  spec.padding = {0, 1};
  EXPECT_EQ(spec.text(), "fp16 conv 2x9x8x3 -> 5, 1x3/1x2");
  EXPECT_EQ(spec.out_h(), 9);
  EXPECT_EQ(spec.out_w(), 4);
}

// Of a convolution with that stride.
GraphKind taken(GraphKind kind, Precision precision, std::int64_t stride = 1) {
  return rk::taken(GraphSpec{.kind = kind,
                             .precision = precision,
                             .n = 2,
                             .c = 8,
                             .h = 8,
                             .w = 8,
                             .out_channels = 8,
                             .stride = {stride, stride}});
}

TEST(GpuGraph, AStridedInputsGradientIsTakenAlone) {
  for (const GraphKind kind : {GraphKind::kInputGradientAdd, GraphKind::kInputGradientRelu,
                               GraphKind::kInputGradientAddRelu}) {
    EXPECT_EQ(taken(kind, Precision::kFp16), kind);
    EXPECT_EQ(taken(kind, Precision::kFp16, 2), GraphKind::kInputGradient);
  }
  EXPECT_EQ(taken(GraphKind::kConvolutionBiasRelu, Precision::kFp16, 2),
            GraphKind::kConvolutionBiasRelu);
}

// What is added to the gradient of a block's input, and its mask, go with the convolution that has
// no stride.
TEST(GpuGraph, ShortcutsComeFirstBackward) {
  bool strided = false;
  for (const GraphSpec& spec :
       graphs("resnet50", true, BatchNormMode::kRunning, Precision::kFp16)) {
    if (spec.kind == GraphKind::kInputGradient && spec.stride[0] == 2) strided = true;
    if (spec.kind == GraphKind::kInputGradientAddRelu) {
      EXPECT_EQ(spec.stride[0], 1) << spec.text();
    }
  }
  EXPECT_TRUE(strided);
}

TEST(GpuGraph, StrictPrecisionTakesTheConvolutionAlone) {
  EXPECT_EQ(taken(GraphKind::kConvolutionSums, Precision::kFp32), GraphKind::kConvolution);
  EXPECT_EQ(taken(GraphKind::kInputGradientAddRelu, Precision::kFp32), GraphKind::kInputGradient);
  EXPECT_EQ(taken(GraphKind::kInputGradientAddRelu, Precision::kFp16),
            GraphKind::kInputGradientAddRelu);
  const auto specs = graphs("resnet18", true, BatchNormMode::kBatch, Precision::kFp32);
  EXPECT_EQ(count(specs, GraphKind::kConvolutionSums), 0);
  EXPECT_EQ(count(specs, GraphKind::kBatchNormRelu), 0);  // ours
}

}  // namespace
}  // namespace rk
