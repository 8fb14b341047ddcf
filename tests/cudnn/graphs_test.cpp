// cuDNN builds every graph of the networks, in each precision, for GPUs that are only described, so
// a graph that the library would refuse fails here and not on the first GPU. Nothing is run:
// neither results nor speed are shown.
//
// There are some 15,000 graphs at 20 ms each, of which each run draws one in four; RK_CUDNN_ALL=1
// takes all. Kernels that the library compiles while it builds a plan take about a second each, so
// only one of each kind and precision is compiled; the others are only accepted. RK_CUDNN_COMPILE=1
// compiles all of them (half an hour).
#include "engine/base/error.h"
#include "engine/base/text_of.h"
#include "engine/device/context.h"
#include "engine/system/dynamic_library.h"
#include "engine/system/read_file.h"
#include "layers/gpu/convolution.h"
#include "layers/gpu/gradient_sums.h"
#include "layers/networks/network.h"
#include "tests/cudnn/described_graph.h"
#include "tests/layers/layer_cases.h"
#include "tests/support/random_seed.h"
#include "tools/bench/tuning/batchnorm_timing.h"
#include "tools/bench/tuning/fusions.h"
#include "weights/architectures/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

namespace rk {
namespace {

struct Images {
  std::int64_t batch, side;
};
struct Step {
  const char* arch;
  Images images;
};
// What users train on, and what the tests of tests/cuda and the pieces of gpu_proof.sh ask of a GPU
// in its first minutes: whole networks, and steps of small ones, whole and in chunks.
constexpr Images kUsers = {128, 224};
constexpr Images kNetworks = {16, 72};
constexpr std::array<Step, 7> kSteps = {{{"resnet20", {16, 16}},
                                         {"resnet20", {8, 16}},
                                         {"resnet20", {4, 16}},
                                         {"resnet20", {8, 32}},
                                         {"resnet18", {4, 33}},
                                         {"resnet18", {16, 32}},
                                         {"resnet18", {32, 32}}}};

// The files hold what cuDNN calls a GPU's device properties: the H100's as cuDNN reports them there
// (GpuDescribed), the others' from their published figures.
struct Gpu {
  const char* name;
  int compute_capability;
};
void PrintTo(const Gpu& gpu, std::ostream* out) { *out << gpu.name; }
constexpr std::array<Gpu, 3> kGpus = {{{"a100", 80}, {"h100", 90}, {"h200", 90}}};

GpuDescription described(const Gpu& gpu) {
  const auto json =
      read_file(fmt::format("{}/{}.json", RK_GPU_DESCRIPTIONS, gpu.name), std::size_t{1} << 20);
  return {std::string(text_of(json)), gpu.compute_capability};
}

using Graphs = std::map<std::string, Graph>;  // by text

// Adds the graphs that the program's nodes run, by any algorithm of batch normalisation.
void add_graphs(Program& program, Graphs& graphs) {
  const auto add = [&](const Graph& graph) {
    const auto [same, is_new] = graphs.emplace(graph.text(), graph);
    EXPECT_TRUE(is_new || same->second == graph) << "two graphs of one text: " << graph.text();
  };
  for (const Graph& graph : graphs_of(program)) add(graph);
  if (!gpu::fuses_sums(program.options().precision)) return;
  for (const BatchNormUnit& unit : batchnorm_units(program)) add(unit.sums);
}

// The distinct graphs of all networks: training with the batch's statistics, with frozen ones,
// evaluation. apart: with every tensor in memory of its own.
Graphs all_graphs(Precision precision, const Images& images = kUsers,
                  const std::vector<std::string>& networks = network_names(), bool apart = false) {
  struct Use {
    BatchNormMode mode;
    bool training;
  };
  const Context context(1);
  Graphs graphs;
  for (const std::string& arch : networks) {
    for (const Use use : {Use{BatchNormMode::kBatch, true}, Use{BatchNormMode::kRunning, true},
                          Use{BatchNormMode::kRunning, false}}) {
      Parameters parameters;
      Program program(
          context, parameters,
          {.gradients = use.training, .keep_all = apart, .precision = precision, .for_gpu = true});
      NetworkSpec network;
      network.arch = arch;
      network.batchnorm = use.mode;
      // The GPU's tests take Inception-v3 at 83 pixels: with fewer than 75, none would be left at
      // its end.
      const std::int64_t side =
          arch == "inception_v3" ? std::max(images.side, std::int64_t{83}) : images.side;
      build_network(program, network, images.batch, side, side);
      add_graphs(program, graphs);
    }
  }
  return graphs;
}

// cuDNN looks up the driver by name and takes what is loaded under that name: without a driver, the
// toolkit's stand-in, whose every call fails.
void load_driver() {
  static const DynamicLibrary driver("libcuda.so.1");
  static const DynamicLibrary stub(driver.handle() != nullptr ? "libcuda.so.1" : RK_CUDA_STUB);
  ASSERT_NE(stub.handle(), nullptr) << stub.problem();
}

class CudnnGraphs : public ::testing::TestWithParam<std::tuple<Gpu, Precision>> {
 protected:
  static void SetUpTestSuite() { load_driver(); }
};
class CudnnChips : public ::testing::TestWithParam<std::tuple<Gpu, Precision>> {
 protected:
  static void SetUpTestSuite() { load_driver(); }
};

// The graphs of the layers' cases, which are compared on a GPU in fp32, batch norm also in tf32.
Graphs layer_graphs(Precision precision) {
  const Context context(1);
  Graphs graphs;
  for (const LayerCase& layer : layer_cases()) {
    if (precision == Precision::kTf32 && !layer.name.starts_with("batchnorm_batch")) continue;
    Parameters parameters;
    Program program(
        context, parameters,
        {.gradients = true, .input_gradient = true, .precision = precision, .for_gpu = true});
    std::vector<TensorId> sources;
    for (const NodeHarness::Source& source : layer.sources) {
      sources.push_back(program.input("source", source.shape));
    }
    program.set_output(layer.record(program, sources));
    add_graphs(program, graphs);
  }
  return graphs;
}

// The library normalises only multiples of 4 channels; for others our own kernels take its place
// (GraphRunner::exists).
bool is_ours(const Graph& graph) {
  const bool normalises =
      graph.has(Graph::Op::kBatchNorm) || graph.has(Graph::Op::kBatchNormGradient);
  return normalises && graph.tensors()[0].shape[3] % 4 != 0;
}

// One in so many of them, another one each time and for each chip and precision.
template <class Map> Map drawn(Map graphs, std::uint64_t one_in) {
  if (std::getenv("RK_CUDNN_ALL") != nullptr) return graphs;
  static std::mt19937_64 random(random_seed());
  std::erase_if(graphs, [&](const auto&) { return random() % one_in != 0; });
  return graphs;
}

void expect_supported(const Gpu& gpu, Precision precision, const Graphs& all) {
  const GpuDescription description = described(gpu);
  const Graphs graphs = drawn(all, 8);
  const bool compile_all = std::getenv("RK_CUDNN_COMPILE") != nullptr;
  std::map<PlanState, int> reached;
  std::size_t workspace = 0;
  for (const auto& [text, described] : graphs) {
    if (is_ours(described)) {
      EXPECT_THROW(DescribedGraph(described, description, compile_all), DeviceError)
          << text << " is supported after all";
      continue;
    }
    try {
      const DescribedGraph graph(described, description, compile_all);
      ++reached[graph.state()];
      EXPECT_EQ(graph.places_added_by_run(), 0U) << text;
      workspace = std::max(workspace, graph.workspace_bytes());
    } catch (const DeviceError& error) {
      ADD_FAILURE() << error.what();
    }
  }
  fmt::print(
      "{} {}: {} of {} distinct graphs, {} with a final plan (workspace up to {} MB), {} compiled "
      "without a driver to load them, {} accepted\n",
      gpu.name, name_of(precision), graphs.size(), all.size(), reached[PlanState::kFinal],
      workspace >> 20, reached[PlanState::kCompiled], reached[PlanState::kAccepted]);
  EXPECT_GT(reached[PlanState::kFinal], 0);
}

TEST_P(CudnnGraphs, AreSupported) {
  const auto& [gpu, precision] = GetParam();
  expect_supported(gpu, precision, all_graphs(precision));
}

TEST_P(CudnnChips, SupportWhatTheGpusTestsAsk) {
  const auto& [gpu, precision] = GetParam();
  Graphs graphs =
      all_graphs(precision, kNetworks, {"resnet18", "resnet50", "googlenet", "inception_v3"});
  for (const Step& step : kSteps) graphs.merge(all_graphs(precision, step.images, {step.arch}));
  graphs.merge(layer_graphs(precision));
  expect_supported(gpu, precision, graphs);
}

bool has_rows_apart(const Graph& graph) {
  return std::ranges::any_of(graph.tensors(), [](const auto& t) { return t.row_stride > 0; });
}

// Writing into the joined tensor, or reading its gradient there, must cost a convolution no engine:
// if one is ready made for dense images, one is for rows apart.
TEST_P(CudnnGraphs, RowsApartNeedNoCompiler) {
  const auto& [gpu, precision] = GetParam();
  const GpuDescription description = described(gpu);
  const std::vector<std::string> networks = {"googlenet", "inception_v3"};
  const Graphs joined = all_graphs(precision, kUsers, networks);
  const Graphs apart = all_graphs(precision, kUsers, networks, /*apart=*/true);
  int count = 0, ready = 0, same = 0;
  for (const auto& [text, graph] : drawn(joined, 4)) {
    if (!has_rows_apart(graph)) continue;
    const std::string alone = text.substr(0, text.rfind(", "));
    ASSERT_TRUE(apart.contains(alone)) << alone;
    ++count;
    try {
      const DescribedGraph spaced(graph, description, false);
      const DescribedGraph dense(apart.at(alone), description, false);
      same += !dense.engine().empty() && spaced.engine() == dense.engine() ? 1 : 0;
      ready += dense.engine().empty() ? 0 : 1;
      EXPECT_EQ(spaced.state(), dense.state()) << text;
    } catch (const DeviceError& error) {
      ADD_FAILURE() << error.what();
    }
  }
  fmt::print("{} {}: {} graphs with rows apart, {} ready made, {} on the engine of the dense one\n",
             gpu.name, name_of(precision), count, ready, same);
  EXPECT_GT(count, 0);
}

// Compiles, of each kind drawn, the graph of the smallest images; graphs of a kind differ only in
// sizes.
TEST_P(CudnnChips, CompileEveryKindOfKernel) {
  const auto& [gpu, precision] = GetParam();
  using Kind = std::pair<std::vector<Graph::Op>, bool>;
  const auto kind_of = [](const Graph& graph) {
    Kind kind{{}, has_rows_apart(graph)};
    for (const Graph::Operation& operation : graph.operations()) kind.first.push_back(operation.op);
    return kind;
  };
  const auto pixels_of = [](const Graph& graph) {
    std::int64_t pixels = 0;
    for (const Graph::Tensor& tensor : graph.tensors()) {
      pixels = std::max(pixels, tensor.shape[1] * tensor.shape[2]);
    }
    return pixels;
  };
  std::map<Kind, const Graph*> smallest;
  const Graphs graphs = all_graphs(precision);
  for (const auto& [text, graph] : graphs) {
    const auto [at, is_new] = smallest.emplace(kind_of(graph), &graph);
    if (!is_new && pixels_of(graph) < pixels_of(*at->second)) at->second = &graph;
  }
  int compiled = 0;
  const std::map<Kind, const Graph*> kinds = drawn(smallest, 4);
  for (const auto& [kind, smaller] : kinds) {
    try {
      const DescribedGraph graph(*smaller, described(gpu), true);
      EXPECT_NE(graph.state(), PlanState::kAccepted) << smaller->text();
      compiled += graph.state() == PlanState::kCompiled ? 1 : 0;
    } catch (const DeviceError& error) {
      ADD_FAILURE() << error.what();
    }
  }
  fmt::print(
      "{} {}: {} of {} kinds of graphs, kernels of {} compiled without a driver to load them\n",
      gpu.name, name_of(precision), kinds.size(), smallest.size(), compiled);
}

// Gradients with their sums need no compiler, at least in ResNets.
TEST_P(CudnnChips, HaveReadyMadeGradientsWithSums) {
  const auto& [gpu, precision] = GetParam();
  if (precision != Precision::kFp16) GTEST_SKIP() << "the library has them in fp16 alone";
  int count = 0;
  auto graphs = all_graphs(precision, kUsers, {"resnet18", "resnet50"});
  graphs.merge(all_graphs(precision, kNetworks, {"resnet18", "resnet50"}));
  for (const auto& [text, graph] : graphs) {
    if (!gpu::is_masked_gradient(graph)) continue;
    ++count;
    try {
      const DescribedGraph with_sums(gpu::graph_with_sums(graph), described(gpu), false);
      EXPECT_EQ(with_sums.state(), PlanState::kFinal) << text;
      EXPECT_EQ(with_sums.places_added_by_run(), 0U) << text;
    } catch (const DeviceError& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GT(count, 20);
}

// What `bench step --fusions` times on a GPU: all of it must be ready made.
TEST_P(CudnnChips, HaveFusionsReadyMade) {
  const auto& [gpu, precision] = GetParam();
  if (precision != Precision::kFp16) GTEST_SKIP() << "the library has them in fp16 alone";
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters,
                  {.gradients = true, .precision = precision, .for_gpu = true});
  NetworkSpec network;
  network.arch = "resnet50";
  build_network(program, network, kUsers.batch, kUsers.side, kUsers.side);
  std::map<FusionKind, int> count, ready;
  for (const Fusion& fusion : find_fusions(program)) {
    for (const Graph& graph : fusion.fused) {
      ++count[fusion.kind];
      try {
        const DescribedGraph built(graph, described(gpu), false);
        ready[fusion.kind] += built.state() == PlanState::kFinal ? 1 : 0;
        EXPECT_EQ(built.places_added_by_run(), 0U) << graph.text();
      } catch (const DeviceError& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
  for (const FusionKind kind : kFusionKinds) {
    fmt::print("{}: {}: {} of {} graphs ready made\n", gpu.name, name_of(kind), ready[kind],
               count[kind]);
    EXPECT_GT(count[kind], 0);
    EXPECT_EQ(ready[kind], count[kind]) << name_of(kind);
  }
}

std::string name_of_case(const ::testing::TestParamInfo<std::tuple<Gpu, Precision>>& info) {
  return fmt::format("{}_{}", std::get<0>(info.param).name, name_of(std::get<1>(info.param)));
}
INSTANTIATE_TEST_SUITE_P(All, CudnnGraphs,
                         ::testing::Combine(::testing::ValuesIn(kGpus),
                                            ::testing::ValuesIn(kPrecisions)),
                         name_of_case);
// An H200 has the H100's chip.
INSTANTIATE_TEST_SUITE_P(All, CudnnChips,
                         ::testing::Combine(::testing::ValuesIn(std::span(kGpus).first(2)),
                                            ::testing::ValuesIn(kPrecisions)),
                         name_of_case);

}  // namespace
}  // namespace rk
