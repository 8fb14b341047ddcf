// What the nodes of the GPU path ask cuDNN for is what graphs_of() lists; and gradients of
// normalisations that share their input, on a GPU made of the host.
#include "engine/base/note.h"
#include "layers/graphs/graph.h"
#include "tests/cuda/network_on_gpu.h"
#include "tests/host_gpu/gpu_graph_log.h"
#include "tests/support/node_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace rk {
namespace {

using testing::Listed, testing::NetworkCase, testing::network_spec, testing::off, testing::take_way;

std::set<GraphSpec> graphs_asked_for(const NetworkCase& network, bool gradients) {
  host_gpu::forget_graphs();
  const Context context(1, Device{.cuda = true});
  take_way(context, network);
  Parameters parameters;
  Program program(context, parameters, {.gradients = gradients, .precision = network.precision});
  build_network(program, network_spec(network), network.batch, network.side, network.side);
  program.plan();
  const auto& built = host_gpu::graphs_built();
  return {built.begin(), built.end()};
}

// All that the deviceless test validates is run by a node in one of the ways, and nothing else is.
class HostGpuNetwork
    : public ::testing::TestWithParam<std::tuple<std::string, BatchNormMode, Precision>> {};

TEST_P(HostGpuNetwork, AsksForTheGraphsThatAreListed) {
  const auto& [arch, mode, precision] = GetParam();
  for (const bool gradients : {true, false}) {
    NetworkCase network{.arch = arch, .mode = mode, .precision = precision};
    if (!gradients) network.mode = BatchNormMode::kRunning;
    std::set<GraphSpec> built;
    for (const gpu::BatchNormWay way : gpu::kBatchNormWays) {
      network.way = way;
      built.merge(graphs_asked_for(network, gradients));
    }
    const Listed listed(network, gradients);
    const auto graphs = graphs_of(listed.program, network.mode, precision);
    const std::set<GraphSpec> all(graphs.begin(), graphs.end());
    for (const GraphSpec& graph : built) {
      EXPECT_TRUE(all.contains(graph)) << graph.text() << " is not listed";
    }
    for (const GraphSpec& graph : all) {
      EXPECT_TRUE(built.contains(graph)) << graph.text() << " is run by no node";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, HostGpuNetwork,
    ::testing::Combine(::testing::Values("resnet18", "resnet50"),
                       ::testing::Values(BatchNormMode::kBatch, BatchNormMode::kRunning),
                       ::testing::ValuesIn(kPrecisions)),
    [](const auto& parameter) {
      return fmt::format("{}_{}_{}", std::get<0>(parameter.param),
                         std::get<1>(parameter.param) == BatchNormMode::kBatch ? "batch" : "frozen",
                         name_of(std::get<2>(parameter.param)));
    });

// A card that lacks an engine for what is fused computes the same in parts.
TEST(HostGpuNetworkForms, RefusedFusionsAreComputedInParts) {
  using Kind = GraphKind;
  std::vector<std::string> notes;
  send_notes([&](const std::string& line) { notes.push_back(line); });
  host_gpu::refuse_graphs({Kind::kConvolutionBias, Kind::kConvolutionBiasRelu,
                           Kind::kConvolutionBiasAddRelu, Kind::kInputGradientAdd,
                           Kind::kInputGradientRelu, Kind::kInputGradientAddRelu});
  const Context gpu(2, Device{.cuda = true});
  for (const BatchNormMode mode : {BatchNormMode::kRunning, BatchNormMode::kBatch}) {
    for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kFp16}) {
      testing::compare_network_with_cpu({.mode = mode, .precision = precision}, gpu);
    }
  }
  host_gpu::refuse_graphs({});
  send_notes_to_standard_error();
  EXPECT_GT(notes.size(), 10U);
}

// An image that three normalisations read, as input and as residual: the last of them overwrites
// its gradient, the others add to it.
std::vector<float> shared_input_gradient(const Context& context, Precision precision) {
  Parameters parameters;
  Program program(context, parameters,
                  {.gradients = true, .input_gradient = true, .precision = precision});
  const Shape shape = {2, 5, 3, 8};
  const TensorId x = program.input("x", shape);
  const TensorId a = batchnorm(program, x, "a", {.relu = true});
  const TensorId b = batchnorm(program, a, "b", {.relu = true, .residual = x});
  const TensorId c = batchnorm(program, x, "c", {.relu = true, .residual = b});
  program.set_output(c);
  program.plan();
  parameters.initialise(context, 3);
  parameters.upload();
  std::ranges::copy(testing::noise(shape.elements(), 1), program.value(x));
  program.forward();
  std::ranges::copy(testing::noise(shape.elements(), 2), program.gradient(c));
  program.backward();
  return {program.gradient(x), program.gradient(x) + shape.elements()};
}

TEST(HostGpuNetworkForms, GradientsOfNormalisationsAreAdded) {
  const std::vector<float> expected = shared_input_gradient(Context(1), Precision::kFp32);
  const Context gpu(1, Device{.cuda = true});
  EXPECT_LE(off(shared_input_gradient(gpu, Precision::kFp32), expected), 1e-6);
  EXPECT_LE(off(shared_input_gradient(gpu, Precision::kTf32), expected), 1e-6);
}

}  // namespace
}  // namespace rk
