// The fusions of tools/bench/tuning/fusions.h, run by the emulated GPU's loops: a fused graph must
// compute what its parts, and the passes that it spares, compute.
#include "tools/bench/tuning/fusions.h"
#include "engine/base/error.h"
#include "kernels/half_element.h"
#include "layers/graphs/graph_runner.h"
#include "layers/networks/network.h"
#include "tests/host_gpu/cuda/device.h"
#include "tests/host_gpu/cudnn/engines.h"
#include "tests/support/random_seed.h"
#include "tests/training/noise_batch.h"
#include "tools/bench/tuning/time_fusions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace rk {
namespace {

using enum GraphRole;
using Values = std::vector<double>;

// Tensors by role: a graph reads drawn numbers, or what the test put there.
class Places {
 public:
  Places(const Context& context, std::mt19937& random) : context_(context), random_(random) {}

  void put(GraphRole role, const Graph::Tensor& tensor, const Values& values) {
    Memory memory = context_.allocate(tensor.bytes());
    if (tensor.type == DType::kFloat16) {
      std::vector<Float16> narrow;
      for (const double v : values) narrow.push_back(to_half(v));
      memory.upload(narrow.data(), memory.bytes());
    } else {
      const std::vector<float> narrow(values.begin(), values.end());
      memory.upload(narrow.data(), memory.bytes());
    }
    memory_.insert_or_assign(role, std::move(memory));
    tensors_.insert_or_assign(role, tensor);
  }
  // Runs the graph on the tensors that are there, and draws the others.
  void run(const Graph& graph) {
    std::vector<GraphRunner::Place> places;
    for (const Graph::Tensor& tensor : graph.tensors()) {
      if (tensor.role == kNone) continue;
      if (tensor.written || !memory_.contains(tensor.role)) {
        put(tensor.role, tensor, drawn(tensor));
      }
      places.push_back({tensor.role, memory_.at(tensor.role).data()});
    }
    GraphRunner ready(context_, graph);
    const Memory workspace = context_.allocate(ready.workspace_bytes());
    ready.bind(places, workspace.data());
    ready.run();
    context_.synchronize();
  }
  Values of(GraphRole role) const {
    const Graph::Tensor& tensor = tensors_.at(role);
    const auto count = static_cast<std::size_t>(tensor.elements());
    if (tensor.type == DType::kFloat16) {
      std::vector<Float16> values(count);
      memory_.at(role).download(values.data(), tensor.bytes());
      Values wide;
      for (const Float16 v : values) wide.push_back(Element<Float16>::widen(v));
      return wide;
    }
    std::vector<float> values(count);
    memory_.at(role).download(values.data(), tensor.bytes());
    return {values.begin(), values.end()};
  }

 private:
  static Float16 to_half(double value) {
    return Element<Float16>::narrow(static_cast<float>(value));
  }
  Values drawn(const Graph::Tensor& tensor) {
    std::normal_distribution<double> normal;
    Values values(static_cast<std::size_t>(tensor.elements()));
    for (double& v : values) {
      v = normal(random_);
      if (tensor.role == kW) v *= 0.1;
      if (tensor.role == kInvStd) v = 0.5 + std::abs(v);
    }
    return values;
  }

  const Context& context_;
  std::mt19937& random_;
  std::map<GraphRole, Memory> memory_;
  std::map<GraphRole, Graph::Tensor> tensors_;
};

// Relative to the largest expected value: 16 bits keep 11 of a value, sums and products of them
// some fewer.
void expect_close(const Values& got, const Values& expected, const std::string& what) {
  constexpr double kWithin = 4e-3;
  ASSERT_EQ(got.size(), expected.size()) << what;
  double largest = 0;
  for (const double v : expected) largest = std::max(largest, std::abs(v));
  EXPECT_GT(largest, 0) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], kWithin * largest) << what << ", " << i;
  }
}

void check_normalised_input(const Context& context, const Fusion& fusion, std::mt19937& random) {
  const Graph& forward = fusion.fused[0];
  Places fused(context, random), apart(context, random);
  fused.run(forward);
  const Values x = fused.of(kX), scale = fused.of(kScale), bias = fused.of(kBias);
  Values z(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % scale.size();
    z[i] = std::max(0.0, x[i] * scale[c] + bias[c]);
  }
  const Graph::Tensor& image = fusion.parts[0].tensor(fusion.parts[0].operations()[0].inputs[0]);
  apart.put(kX, image, z);
  apart.put(kW, fusion.parts[0].tensor(fusion.parts[0].operations()[0].inputs[1]), fused.of(kW));
  apart.run(fusion.parts[0]);
  expect_close(fused.of(kY), apart.of(kY), forward.text());
  const Values y = apart.of(kY);
  Values sum(fused.of(kSum).size()), squares(sum.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    sum[i % sum.size()] += y[i];
    squares[i % sum.size()] += y[i] * y[i];
  }
  expect_close(fused.of(kSum), sum, forward.text());
  expect_close(fused.of(kSquares), squares, forward.text());
  ASSERT_EQ(fusion.fused.size(), 2U);
  fused.run(fusion.fused[1]);
  apart.put(kDy, fusion.parts[1].tensor(0), fused.of(kDy));
  apart.run(fusion.parts[1]);
  expect_close(fused.of(kDw), apart.of(kDw), fusion.fused[1].text());
}

void check_gradient_sums(const Context& context, const Fusion& fusion, std::mt19937& random) {
  const Graph &graph = fusion.fused[0], &part = fusion.parts[0];
  const std::string text = graph.text();
  Places fused(context, random), apart(context, random);
  fused.run(graph);
  for (const Graph::Tensor& tensor : part.tensors()) {
    if (tensor.role == kNone || tensor.written) continue;
    apart.put(tensor.role, tensor, fused.of(tensor.role));
  }
  apart.run(part);
  const Values dz = apart.of(kDx), x = fused.of(kX), gamma = fused.of(kGamma);
  const Values beta = fused.of(kBeta), mean = fused.of(kMean), inv_std = fused.of(kInvStd);
  const bool behind_residual = fusion.kind == FusionKind::kBlockGradientSums;
  const Values residual = behind_residual ? fused.of(kResidual) : Values(x.size());
  const std::size_t channels = gamma.size();
  Values g(x.size()), d_gamma(channels), d_beta(channels), dx(x.size()), combined(x.size());
  const auto normalised = [&](std::size_t i) {
    return (x[i] - mean[i % channels]) * inv_std[i % channels];
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % channels;
    const double z = normalised(i) * gamma[c] + beta[c] + residual[i];
    g[i] = z > 0 ? dz[i] : 0;
    d_gamma[c] += g[i] * normalised(i);
    d_beta[c] += g[i];
  }
  const Values a = fused.of(kScaleDy), b = fused.of(kScaleX), shift = fused.of(kShift);
  const std::size_t pixels = x.size() / channels;
  const auto rows = static_cast<double>(pixels);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % channels;
    dx[i] = gamma[c] * inv_std[c] * (g[i] - d_beta[c] / rows - normalised(i) * d_gamma[c] / rows);
    combined[i] = a[c] * g[i] + b[c] * x[i] + shift[c];
  }
  expect_close(fused.of(kDx), g, text);
  expect_close(fused.of(kDGamma), d_gamma, text);
  expect_close(fused.of(kDBeta), d_beta, text);
  expect_close(combined, dx, text);
}

std::vector<Fusion> fusions_of(const Context& context, const std::string& arch, std::int64_t batch,
                               std::int64_t side) {
  Parameters parameters;
  Program program(context, parameters, {.gradients = true, .precision = Precision::kFp16});
  NetworkSpec network;
  network.arch = arch;
  build_network(program, network, batch, side, side);
  return find_fusions(program);
}
std::map<FusionKind, int> counts_of(const std::vector<Fusion>& fusions) {
  std::map<FusionKind, int> counts;
  for (const Fusion& fusion : fusions) counts[fusion.kind] += fusion.count;
  return counts;
}

TEST(Fusions, ComputeWhatTheirPartsDo) {
  const Context context(2, Device{.cuda = true});
  std::mt19937 random(static_cast<std::uint32_t>(random_seed()));
  for (const std::string arch : {"resnet20", "resnet50"}) {
    std::map<FusionKind, int> kinds;
    // ResNet-50's last images have one pixel.
    for (const Fusion& fusion : fusions_of(context, arch, arch == "resnet20" ? 3 : 2, 16)) {
      ++kinds[fusion.kind];
      const bool large = fusion.parts[0].tensor(1).elements() > 600'000;
      if (large) continue;  // the same again, of more channels
      using enum FusionKind;
      switch (fusion.kind) {
        case kOutputSums: break;  // tests/cuda/layers_test.cpp has it
        case kNormalizedInput: check_normalised_input(context, fusion, random); break;
        default: check_gradient_sums(context, fusion, random);
      }
    }
    EXPECT_EQ(kinds.size(), kFusionKinds.size()) << arch;
  }
}

// Counted by hand from a bottleneck's three convolutions and those around them.
TEST(Fusions, AreFoundWhereTheyAre) {
  const Context context(1, Device{.cuda = true});
  const std::vector<Fusion> fusions = fusions_of(context, "resnet50", 4, 32);
  std::map<FusionKind, int> count = counts_of(fusions);
  using enum FusionKind;
  // Every convolution has a normalisation behind it; those of four blocks' ends are joined.
  EXPECT_EQ(count[kOutputSums], 53 - 2 * 4);
  EXPECT_EQ(count[kNormalizedInput], 32 - 4);  // the second and third of 16 blocks
  EXPECT_EQ(count[kGradientSums], 32);
  EXPECT_EQ(count[kBlockGradientSums], 15 - 4);  // the first of all blocks but the first
  for (const Fusion& fusion : fusions) {
    const std::string text = fusion.parts[0].text();
    if (fusion.kind == kNormalizedInput && text == "fp16 conv 4x8x8x64 -> 64, 3x3/1") {
      // Two bytes each: the sums read y; normalising reads and writes as much as x.
      EXPECT_EQ(fusion.count, 3);
      EXPECT_EQ(fusion.saved_bytes, 2.0 * 3 * (4 * 8 * 8 * 64));
    }
  }
}

// The first block's input is a normalised image that its shortcut reads, too. One of our own
// kernels adds up the gradients of the convolutions that halve.
TEST(Fusions, NeedAnImageToThemselves) {
  const Context context(1, Device{.cuda = true});
  std::map<FusionKind, int> count = counts_of(fusions_of(context, "resnet20", 4, 32));
  using enum FusionKind;
  EXPECT_EQ(count[kNormalizedInput], 9 - 2);  // two blocks' ends are joined
  EXPECT_EQ(count[kGradientSums], 9 + 1);
  EXPECT_EQ(count[kBlockGradientSums], 8 - 2 - 2);
}

TrainerOptions small_step() {
  TrainerOptions options = small_trainer("fastap", 4);
  options.precision = Precision::kFp16;
  return options;
}

TEST(Fusions, AreTimedAndAddedUp) {
  const Context context(1, Device{.cuda = true});
  const TrainerOptions options = small_step();
  // A fusion that no engine has is reported, and does not end the others.
  host_gpu::refuse_graphs(
      [](const Graph& graph) { return graph.text().find("residual") != std::string::npos; });
  std::map<FusionKind, int> kinds;
  double bytes = std::numeric_limits<double>::infinity();
  time_fusions(context, options, 1, 1e9, [&](const TimedFusion& timed) {
    ++kinds[timed.fusion.kind];
    EXPECT_LE(timed.fusion.count * timed.fusion.saved_bytes, bytes);
    bytes = timed.fusion.count * timed.fusion.saved_bytes;
    EXPECT_DOUBLE_EQ(timed.saved_ms, timed.fusion.saved_bytes * 1e-6);
    EXPECT_DOUBLE_EQ(timed.gain_ms(),
                     timed.fusion.count * (timed.parts_ms + timed.saved_ms - timed.fused_ms));
    EXPECT_EQ(std::isinf(timed.fused_ms), timed.fusion.kind == FusionKind::kBlockGradientSums);
  });
  host_gpu::refuse_graphs({});
  EXPECT_EQ(kinds.size(), kFusionKinds.size());
}

// Else every graph would count as one that no engine has.
TEST(Fusions, AGpuThatFailedEndsThem) {
  const Context context(1, Device{.cuda = true});
  const TrainerOptions options = small_step();
  int timed = 0;
  EXPECT_THROW(time_fusions(context, options, 1, 1e9,
                            [&](const TimedFusion&) { host_gpu::fault(++timed == 2); }),
               DeviceFault);
  EXPECT_EQ(timed, 2);
  host_gpu::fault(false);
}

}  // namespace
}  // namespace rk
