// Graphs as values: their texts, tensors and shapes; and which graphs a network's nodes run, with
// which fusions in which precision, recorded without a GPU.
#include "layers/graphs/graph.h"

#include "engine/device/context.h"
#include "layers/networks/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace rk {
namespace {

using enum GraphRole;
using Op = Graph::Op;

// A convolution of 2x9x8x3 to 5 channels.
Graph convolution(std::int64_t kh, std::int64_t kw, const Graph::Window& window) {
  Graph g(Precision::kFp16);
  const auto x = g.read(kX, {2, 9, 8, 3}), w = g.read(kW, {5, kh, kw, 3});
  g.write(g.conv(x, w, window), kY);
  return g;
}

// The text is the key of a plan: it must hold all that tells two graphs apart, and must not change,
// because files of earlier versions hold it.
TEST(Graph, TextsOfConvolutions) {
  EXPECT_EQ(convolution(1, 1, {}).text(), "fp16 conv 2x9x8x3 -> 5, 1x1/1");
  EXPECT_EQ(convolution(1, 3, {.stride = {1, 2}}).text(),
            "fp16 conv 2x9x8x3 -> 5, 1x3/1x2, padding 0x0");
  const Graph flat = convolution(1, 3, {.stride = {1, 2}, .padding = {0, 1}});
  EXPECT_EQ(flat.text(), "fp16 conv 2x9x8x3 -> 5, 1x3/1x2");
  EXPECT_EQ(flat.tensors().back().shape, (Shape{2, 9, 4, 5}));
}

TEST(Graph, TextsOfFusions) {
  Graph forward(Precision::kBf16);
  const auto x = forward.read(kX, {4, 7, 7, 8}), w = forward.read(kW, {16, 3, 3, 8});
  // Operations in the order the library wants; the text has an order of its own.
  auto y = forward.conv(x, w, {.padding = {1, 1}});
  y = forward.add(y, forward.read(kResidual, {4, 7, 7, 16}));
  y = forward.relu(forward.bias(y, forward.read(kBias, {16})));
  forward.write(y, kY);
  EXPECT_EQ(forward.text(), "bf16 conv+bias+add+relu 4x7x7x8 -> 16, 3x3/1");

  Graph sums(Precision::kTf32);
  const auto z = sums.conv(sums.read(kX, {4, 7, 7, 8}), sums.read(kW, {16, 1, 1, 8}), {});
  sums.write(z, kY);
  const auto [sum, squares] = sums.channel_sums(z);
  sums.write(sum, kSum);
  sums.write(squares, kSquares);
  EXPECT_EQ(sums.text(), "tf32 conv+sums 4x7x7x8 -> 16, 1x1/1");

  Graph data(Precision::kFp16);
  const auto dy = data.read(kDy, {4, 4, 4, 16}), v = data.read(kW, {16, 3, 3, 8});
  auto dx = data.dgrad(dy, v, {.stride = {2, 2}, .padding = {1, 1}}, {4, 7, 7, 8});
  dx = data.add(dx, data.read(kAddend, {4, 7, 7, 8}));
  data.write(data.relu_gradient(dx, data.read(kX, {4, 7, 7, 8})), kDx);
  EXPECT_EQ(data.text(), "fp16 dgrad+add+drelu 4x7x7x8 -> 16, 3x3/2");

  Graph weights(Precision::kFp32);
  const auto d = weights.read(kDy, {4, 7, 7, 16}), u = weights.read(kX, {4, 7, 7, 8});
  weights.write(weights.wgrad(d, u, {}, {16, 1, 1, 8}), kDw);
  EXPECT_EQ(weights.text(), "fp32 wgrad 4x7x7x8 -> 16, 1x1/1");
}

std::string batchnorm_text(double epsilon, double momentum) {
  Graph g(Precision::kFp16);
  const Shape c = {8};
  const auto x = g.read(kX, {2, 5, 5, 8});
  const auto gamma = g.read(kGamma, c), beta = g.read(kBeta, c);
  const auto mean = g.read(kRunningMean, c), variance = g.read(kRunningVariance, c);
  g.write(g.relu(g.batchnorm(x, gamma, beta, mean, variance, epsilon, momentum).y), kY);
  return g.text();
}

// Two networks with other constants must not share a plan.
TEST(Graph, TextsHoldConstantsThatAreNotPyTorchs) {
  EXPECT_EQ(batchnorm_text(1e-5, 0.1), "fp16 bn+relu 2x5x5x8");
  EXPECT_EQ(batchnorm_text(1e-3, 0.1), "fp16 bn+relu 2x5x5x8, epsilon 0.001");
  EXPECT_EQ(batchnorm_text(1e-3, 0.01), "fp16 bn+relu 2x5x5x8, epsilon 0.001, momentum 0.01");
}

// Images, weights and a bias in the precision's type, statistics in float32, masks in bits.
TEST(Graph, TensorsHaveTheTypeOfTheirRole) {
  Graph g(Precision::kBf16);
  const auto y = g.conv(g.read(kX, {1, 3, 3, 8}), g.read(kW, {7, 1, 1, 8}), {});
  const auto z = g.bias(y, g.read(kBias, {7}));
  g.write(z, kY);
  g.write(g.positive(z), kSigns);
  g.write(g.channel_sums(z).sum, kSum);
  std::size_t written = 0;
  for (const Graph::Tensor& tensor : g.tensors()) {
    written += tensor.written ? 1 : 0;
    switch (tensor.role) {
      case kNone:
      case kSum: EXPECT_EQ(tensor.type, DType::kFloat32); break;
      case kSigns:
        EXPECT_EQ(tensor.elements(), 63);
        EXPECT_EQ(tensor.bytes(), 8U);
        break;
      default:
        EXPECT_EQ(tensor.type, DType::kBfloat16) << name_of(tensor.role);
        EXPECT_EQ(tensor.bytes(), 2 * static_cast<std::size_t>(tensor.elements()));
    }
  }
  EXPECT_EQ(written, 3U);
  EXPECT_EQ(g, Graph(g));
  Graph more = g;
  more.relu(z);
  EXPECT_NE(g, more);
}

TEST(Graph, ImagesAmongMoreChannelsHaveRowsApart) {
  Graph g(Precision::kFp16);
  const auto x = g.read(kX, {2, 3, 3, 8}), w = g.read(kW, {5, 1, 1, 8});
  Graph dense = g;
  dense.write(dense.conv(x, w, {}), kY);
  g.write(g.conv(x, w, {}), kY, 24);
  EXPECT_EQ(g.text(), "fp16 conv 2x3x3x8 -> 5, 1x1/1, y in 24");
  EXPECT_NE(g, dense);
  EXPECT_EQ(g.tensors().back().elements(), 90);
  EXPECT_EQ(g.tensors().back().bytes(), 2U * (17 * 24 + 5));
}

// The graphs that the nodes of a network run, recorded for a GPU.
class NetworkGraphs : public ::testing::Test {
 protected:
  static std::vector<Graph> graphs(const std::string& arch, bool training, BatchNormMode mode,
                                   Precision precision) {
    const Context context(1);
    Parameters parameters;
    Program program(context, parameters,
                    {.gradients = training, .precision = precision, .for_gpu = true});
    NetworkSpec network;
    network.arch = arch;
    network.batchnorm = mode;
    build_network(program, network, 4, 224, 224);
    return graphs_of(program);
  }
  static std::ptrdiff_t count(const std::vector<Graph>& graphs, const std::vector<Op>& all_of,
                              const std::vector<Op>& none_of = {}) {
    return std::ranges::count_if(graphs, [&](const Graph& graph) {
      const auto has = [&](Op op) { return graph.has(op); };
      return std::ranges::all_of(all_of, has) && std::ranges::none_of(none_of, has);
    });
  }
};

// The number of distinct shapes of convolutions, worked out by hand from He et al. 2016, table 1.
TEST_F(NetworkGraphs, DistinctConvolutionsOfTheNetworks) {
  for (const Precision precision : kPrecisions) {
    SCOPED_TRACE(name_of(precision));
    const auto small = graphs("resnet18", true, BatchNormMode::kBatch, precision);
    EXPECT_EQ(count(small, {Op::kConv}), 11);
    EXPECT_EQ(count(small, {Op::kWgrad}), 11);
    const auto large = graphs("resnet50", true, BatchNormMode::kBatch, precision);
    EXPECT_EQ(count(large, {Op::kConv}), 23);
    EXPECT_EQ(count(large, {Op::kWgrad}), 23);
  }
}

TEST_F(NetworkGraphs, EvaluationIsForwardAloneAndFolded) {
  for (const Graph& graph : graphs("resnet50", false, BatchNormMode::kRunning, Precision::kFp16)) {
    EXPECT_TRUE(graph.has(Op::kConv) && graph.has(Op::kBias)) << graph.text();
  }
}

// All four branches of GoogLeNet's nine blocks end in a convolution, which writes among the block's
// channels and reads its gradient there; in two of Inception-v3's eleven blocks, one branch ends in
// a pooling. With batch statistics each convolution is followed by a normalisation, so it does not
// write there.
TEST_F(NetworkGraphs, BranchesWriteWhereTheyAreJoined) {
  const auto apart = [](const std::vector<Graph>& all, GraphRole role) {
    std::set<std::string> texts;
    for (const Graph& graph : all) {
      for (const Graph::Tensor& tensor : graph.tensors()) {
        if (tensor.role == role && tensor.row_stride > 0) texts.insert(graph.text());
      }
    }
    return std::ssize(texts);
  };
  for (const Precision precision : kPrecisions) {
    const auto googlenet = graphs("googlenet", true, BatchNormMode::kRunning, precision);
    // Not in bf16 with a backward pass: the library fuses too little then.
    EXPECT_EQ(apart(googlenet, kY) > 20, precision != Precision::kBf16);
    EXPECT_GE(apart(googlenet, kDy), 2 * apart(googlenet, kY));  // of weights and of inputs
    EXPECT_GT(apart(graphs("inception_v3", false, BatchNormMode::kRunning, precision), kY), 15);
    EXPECT_EQ(apart(graphs("googlenet", true, BatchNormMode::kBatch, precision), kY), 0);
    EXPECT_EQ(apart(graphs("resnet50", true, BatchNormMode::kRunning, precision), kY), 0);
  }
}

// In a basic block with an identity shortcut, the first convolution adds its input's gradient to
// the shortcut's and masks the sum with the ReLU of the block before. If the shortcut is a
// convolution, recorded first, the shortcut's gradient does the addition. Images have no gradient.
TEST_F(NetworkGraphs, InputGradientsOfFrozenTraining) {
  std::set<std::string> texts;
  for (const Graph& g : graphs("resnet18", true, BatchNormMode::kRunning, Precision::kBf16)) {
    if (g.has(Op::kDgrad)) texts.insert(g.text());
  }
  const std::set<std::string> expected = {
      // With a stride nothing is fused.
      // layer1 follows the pool: there is no ReLU to mask with.
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

TEST_F(NetworkGraphs, BatchStatisticsMaskInTheNormalisation) {
  const auto all = graphs("resnet50", true, BatchNormMode::kBatch, Precision::kFp16);
  EXPECT_EQ(count(all, {Op::kDgrad, Op::kReluGradient}), 0);
  // The outputs of a stage's last convolutions: one shape per stage. Our own kernels join the
  // shortcut's normalisation with the one it is added to.
  EXPECT_EQ(count(all, {Op::kBatchNorm, Op::kAdd}), 4);
  EXPECT_EQ(count(all, {Op::kBatchNorm}, {Op::kRelu}), 0);
}

// The addition to the gradient of a block's input, and its mask, are fused with the convolution
// that has no stride: the library fuses nothing with the other one's gradient.
TEST_F(NetworkGraphs, ShortcutsComeFirstBackward) {
  bool strided = false;
  for (const Graph& graph : graphs("resnet50", true, BatchNormMode::kRunning, Precision::kFp16)) {
    if (!graph.has(Op::kDgrad)) continue;
    if (graph.operations()[0].window.stride[0] == 1) continue;
    strided = true;
    EXPECT_EQ(graph.operations().size(), 1U) << graph.text();
  }
  EXPECT_TRUE(strided);
}

TEST_F(NetworkGraphs, StrictPrecisionTakesTheConvolutionAlone) {
  for (const BatchNormMode mode : {BatchNormMode::kBatch, BatchNormMode::kRunning}) {
    const auto all = graphs("resnet18", true, mode, Precision::kFp32);
    EXPECT_EQ(count(all, {Op::kChannelSums}), 0);
    EXPECT_EQ(count(all, {Op::kBatchNorm}), 0);  // ours
    EXPECT_EQ(count(all, {Op::kDgrad, Op::kAdd}), 0);
    EXPECT_EQ(count(all, {Op::kDgrad, Op::kReluGradient}), 0);
    EXPECT_GT(count(all, {Op::kDgrad}), 0);
  }
}

}  // namespace
}  // namespace rk
