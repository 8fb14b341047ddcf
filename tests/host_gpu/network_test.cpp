// The GPU path's nodes must ask cuDNN for exactly the graphs that they list (Node::graphs), and
// must list the same ones without a GPU; gradients of normalisations that share their input. On the
// emulated GPU.
#include "engine/base/random.h"
#include "layers/conv_bn.h"
#include "layers/gpu/gradient_sums.h"
#include "layers/graphs/graph.h"
#include "tests/cuda/network_on_gpu.h"
#include "tests/host_gpu/cudnn/engines.h"
#include "tests/support/heard_notes.h"
#include "tests/support/messages.h"
#include "tests/support/node_harness.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace rk {
namespace {

using Texts = std::set<std::string>;

// The case's network, recorded with its algorithm of batch normalisation.
struct Recorded {
  Recorded(const Context& context, const NetworkCase& network, bool gradients)
      : program(context, parameters,
                {.gradients = gradients, .precision = network.precision, .for_gpu = true}) {
    take_algorithm(context, network);
    build_network(program, network_spec(network), network.batch, network.side, network.side);
  }
  Texts listed() {
    Texts texts;
    for (const Graph& graph : graphs_of(program)) texts.insert(graph.text());
    return texts;
  }
  Parameters parameters;
  Program program;
};

Texts built() {
  Texts texts;
  for (const Graph& graph : host_gpu::graphs_built()) texts.insert(graph.text());
  return texts;
}

// A graph that a node would run without listing it would be neither validated for GPUs that are not
// here nor tuned.
class HostGpuNetwork
    : public ::testing::TestWithParam<std::tuple<std::string, BatchNormMode, Precision>> {};

TEST_P(HostGpuNetwork, AsksForTheGraphsThatItsNodesSay) {
  const auto& [arch, mode, precision] = GetParam();
  const Context host(1);
  for (const BatchNormAlgorithm algorithm : kBatchNormAlgorithms) {
    for (const bool gradients : {true, false}) {
      const NetworkCase network{
          .arch = arch, .mode = mode, .precision = precision, .algorithm = algorithm};
      SCOPED_TRACE(fmt::format("algorithm {}, {}", static_cast<int>(algorithm),
                               gradients ? "training" : "evaluation"));
      const Context gpu(1, Device{.cuda = true});  // has built none of them yet
      Recorded recorded(gpu, network, gradients);
      const Texts said = recorded.listed();
      host_gpu::forget_graphs();
      recorded.program.plan();
      EXPECT_EQ(built(), said);
      EXPECT_EQ(recorded.listed(), said) << "after plan()";
      EXPECT_EQ(Recorded(host, network, gradients).listed(), said) << "without a GPU";
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

// If the plan table names gradients with sums, the nodes must list and build them for every
// gradient that a normalisation takes up, and these are what is tuned.
TEST(HostGpuNetworkForms, GradientsAreAddedUpWhereTheTableSaysSo) {
  for (const char* arch : {"resnet18", "resnet50"}) {
    const Context gpu(1, Device{.cuda = true});
    const NetworkCase network{
        .arch = arch, .mode = BatchNormMode::kRunning, .precision = Precision::kFp16};
    NetworkCase with_sums = network;
    with_sums.graph_sums = true;
    Recorded plain(gpu, network, true);
    Texts expected;
    for (const Graph& graph : graphs_of(plain.program)) {
      expected.insert(gpu::is_masked_gradient(graph) ? gpu::graph_with_sums(graph).text()
                                                     : graph.text());
    }
    Recorded recorded(gpu, with_sums, true);
    EXPECT_EQ(recorded.listed(), expected) << arch;
    host_gpu::forget_graphs();
    recorded.program.plan();
    EXPECT_EQ(built(), expected) << arch;
    EXPECT_TRUE(holds(recorded.program.implementations(), "gradients added up"));
  }
}

// A GPU that lacks an engine for fused graphs, or has one that it then does not run, must compute
// the same in parts, and normalise by our own kernels.
TEST(HostGpuNetworkForms, RefusedFusionsAreComputedInParts) {
  HeardNotes notes;
  const auto fused = [](const Graph& graph) {
    return graph.operations().size() > 1 || graph.has(Graph::Op::kBatchNorm);
  };
  const std::uint64_t seed = random_seed();
  const auto is_built = [&](const Graph& graph) {
    return !fused(graph) ||
           CounterRandom(seed, 0, std::hash<std::string>()(graph.text())).below(2) == 1;
  };
  host_gpu::offer_engines([&](const Graph& graph) -> std::vector<host_gpu::HostEngine> {
    if (!is_built(graph)) return {};
    return {{.not_run = fused(graph) ? "refused when it ran" : ""}};
  });
  host_gpu::forget_graphs();
  const Context gpu(2, Device{.cuda = true});
  for (const BatchNormMode mode : {BatchNormMode::kRunning, BatchNormMode::kBatch}) {
    for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kFp16}) {
      compare_network_with_cpu({.mode = mode, .precision = precision}, gpu);
    }
  }
  host_gpu::offer_engines(nullptr);
  for (const Graph& graph : host_gpu::graphs_built()) EXPECT_TRUE(is_built(graph)) << graph.text();
  const auto count = [&](const char* what) {
    return std::ranges::count_if(
        notes.lines, [&](const std::string& line) { return line.find(what) != std::string::npos; });
  };
  EXPECT_GT(count("it is computed in parts"), 10);
  EXPECT_GT(count("our own kernels take its place"), 10);
  // Of more than 20 graphs, a half each on average.
  EXPECT_GT(count(": engines: none; "), 0);
  EXPECT_GT(count(": run: refused when it ran; "), 0);
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
  context.synchronize();
  std::ranges::copy(noise(shape.elements(), 1), program.value(x));
  program.forward();
  context.synchronize();
  std::ranges::copy(noise(shape.elements(), 2), program.gradient(c));
  program.backward();
  context.synchronize();
  return {program.gradient(x), program.gradient(x) + shape.elements()};
}

// A ReLU whose first reader, the last to write its gradient, is a pool that adds to a convolution's
// contribution: the pool must not mask that contribution.
std::vector<float> pooled_and_convolved_gradients(const Context& context) {
  Parameters parameters;
  Program program(context, parameters, {.gradients = true});
  const Shape shape = {2, 6, 5, 8};
  const TensorId x = program.input("x", shape);
  const auto unit = [&](TensorId from, const std::string& name, TensorId residual) {
    return conv_bn(program, from, {name, name + ".bn", name + ".y"}, {.out_channels = 8},
                   {.mode = BatchNormMode::kRunning, .relu = true, .residual = residual});
  };
  const TensorId a = unit(x, "a", -1);
  const TensorId pooled = max_pool(program, a, "pool", {{3, 3}, {1, 1}, {1, 1}, false});
  program.set_output(unit(a, "b", pooled));
  program.plan();
  parameters.initialise(context, 3);
  parameters.upload();
  context.synchronize();
  std::ranges::copy(noise(shape.elements(), 1), program.value(x));
  program.forward();
  context.synchronize();
  std::ranges::copy(noise(shape.elements(), 2), program.gradient(program.find("b.y")));
  program.backward();
  parameters.download_gradients();
  std::vector<float> gradients;
  for (std::size_t p = 0; p < parameters.entries().size(); ++p) {
    std::vector<float> one(static_cast<std::size_t>(parameters.entries()[p].elements()));
    parameters.get(parameters.gradients(), static_cast<ParameterId>(p), one.data());
    gradients.insert(gradients.end(), one.begin(), one.end());
  }
  return gradients;
}

TEST(HostGpuNetworkForms, APoolThatAddsMasksNothing) {
  EXPECT_LE(off(pooled_and_convolved_gradients(Context(1, Device{.cuda = true})),
                pooled_and_convolved_gradients(Context(1))),
            1e-6);
}

// A program recorded for a GPU on a machine without one can be inspected, but not run.
TEST(HostGpuNetworkForms, AProgramForAGpuIsNotPlannedWithoutOne) {
  const Context host(1);
  Recorded recorded(host, {}, true);
  EXPECT_THROW(recorded.program.plan(), std::invalid_argument);
}

TEST(HostGpuNetworkForms, GradientsOfNormalisationsAreAdded) {
  const std::vector<float> expected = shared_input_gradient(Context(1), Precision::kFp32);
  const Context gpu(1, Device{.cuda = true});
  EXPECT_LE(off(shared_input_gradient(gpu, Precision::kFp32), expected), 1e-6);
  EXPECT_LE(off(shared_input_gradient(gpu, Precision::kTf32), expected), 1e-6);
}

}  // namespace
}  // namespace rk
