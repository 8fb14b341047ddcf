// Whole networks through the nodes of the GPU path, on a GPU made of the host, against the CPU's:
// embeddings, gradients of all parameters, running statistics, in every precision, with both kinds
// of batch normalisation; and that what the nodes ask cuDNN for is what graphs_of() lists.
#include "engine/error.h"
#include "kernels/half_element.h"
#include "layers/gpu_batchnorm_timing.h"
#include "layers/gpu_graph.h"
#include "layers/gpu_graph_run.h"
#include "layers/resnet.h"
#include "tests/host_gpu/gpu_graph_log.h"
#include "tests/support/node_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace rk {
namespace {

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kSide = 40;  // odd sizes further down: 10, 5, 3, 2
constexpr std::int64_t kColours = 3;

// Images in [-1, 1), put where the program wants them, in its type.
void fill_images(Program& program, TensorId input, std::uint64_t seed) {
  const Shape& shape = program.shape(input);
  const std::int64_t pixels = shape[0] * shape[1] * shape[2], channels = shape[3];
  const std::vector<float> values = testing::noise(pixels * kColours, seed);
  for (std::int64_t p = 0; p < pixels; ++p) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const float value = c < kColours ? values[static_cast<std::size_t>(p * kColours + c)] : 0.0F;
      const std::int64_t at =
          program.width(input) == 1
              ? (p / (shape[1] * shape[2]) * channels + c) * shape[1] * shape[2] +
                    p % (shape[1] * shape[2])
              : p * channels + c;
      switch (program.dtype(input)) {
        case DType::kFloat16:
          program.address(input).as<__half>()[at] = __float2half_rn(value);
          break;
        case DType::kBfloat16:
          program.address(input).as<__nv_bfloat16>()[at] = __float2bfloat16_rn(value);
          break;
        default: program.value(input)[at] = value;
      }
    }
  }
}

struct Result {
  std::vector<float> embeddings;
  std::vector<std::vector<float>> gradients;  // canonical, by parameter
  std::vector<std::string> names;
  std::vector<float> statistics;
  std::vector<std::int64_t> counters;
};

struct Settings {
  std::string arch = "resnet18";
  BatchNormMode mode = BatchNormMode::kBatch;
  Precision precision = Precision::kFp32;
  bool keep_all = false;
  pool_cpu::Global pool = pool_cpu::Global::kAverage;
  bool fuse = true;
  gpu::BatchNormWay way = gpu::BatchNormWay::kGraphs;  // of the batch's statistics, on the GPU
};

NetworkSpec network_spec(const Settings& settings) {
  NetworkSpec spec;
  spec.arch = settings.arch;
  spec.dim = 24;
  spec.batchnorm = settings.mode;
  spec.pool.kind = settings.pool;
  spec.fuse = settings.fuse;
  return spec;
}

// A program of the network whose graphs and normalisations can be listed.
struct Listed {
  explicit Listed(NetworkSpec spec, bool gradients = true)
      : program(context, parameters, {.gradients = gradients}) {
    spec.batchnorm = BatchNormMode::kRunning;
    build_network(program, spec, kBatch, kSide, kSide);
  }
  Context context{1};
  Parameters parameters;
  Program program;
};

void take_way(const Context& context, const Settings& settings) {
  GpuPlans plans;
  const Listed listed(network_spec(settings));
  for (const BatchNormUnit& unit : batchnorm_units(listed.program, settings.precision)) {
    plans = gpu::plans_for(settings.way, unit, "loops", plans);
  }
  set_plans(context, plans);
}

// Two steps' worth of passes on one set of parameters whose normalisations are not the identity.
Result run(const Context& context, const Settings& settings) {
  Parameters parameters;
  Program program(context, parameters,
                  {.gradients = true,
                   .keep_all = settings.keep_all,
                   .precision = context.on_gpu() ? settings.precision : Precision::kFp32});
  if (context.on_gpu()) take_way(context, settings);
  const NetworkSpec spec = network_spec(settings);
  const Network network = build_network(program, spec, kBatch, kSide, kSide);
  program.plan();
  parameters.initialise(context, 5);
  for (std::size_t b = 0; b < parameters.buffers().size(); ++b) {
    const auto& entry = parameters.buffers()[b];
    if (entry.counter) continue;
    const bool variance = entry.name.ends_with("var");
    const std::vector<float> values = testing::noise(entry.elements, b);
    for (std::int64_t i = 0; i < entry.elements; ++i) {
      const float value = values[static_cast<std::size_t>(i)];
      parameters.buffer(static_cast<BufferId>(b))[i] =
          variance ? 1.2F + 0.3F * value : 0.1F * value;
    }
  }
  for (std::size_t p = 0; p < parameters.entries().size(); ++p) {
    const auto& entry = parameters.entries()[p];
    if (entry.shape.rank() != 1) continue;
    const std::vector<float> values = testing::noise(entry.elements(), 100 + p);
    for (std::int64_t i = 0; i < entry.elements(); ++i) {
      parameters.value(static_cast<ParameterId>(p))[i] +=
          0.2F * values[static_cast<std::size_t>(i)];
    }
  }
  parameters.upload();
  Result result;
  for (std::uint64_t pass = 0; pass < 2; ++pass) {
    fill_images(program, network.input, pass);
    program.forward();
    program.count_forward();
    const float* embeddings = program.value(network.embeddings);
    result.embeddings.assign(embeddings, embeddings + kBatch * spec.dim);
    const std::vector<float> weights = testing::noise(kBatch * spec.dim, 77);
    std::ranges::copy(weights, program.gradient(network.embeddings));
    program.backward();
  }
  parameters.download();
  for (std::size_t p = 0; p < parameters.entries().size(); ++p) {
    const auto& entry = parameters.entries()[p];
    result.names.push_back(entry.name);
    result.gradients.emplace_back(static_cast<std::size_t>(entry.elements()));
    parameters.get(parameters.gradients(), static_cast<ParameterId>(p),
                   result.gradients.back().data());
  }
  result.statistics.assign(parameters.statistics().begin(), parameters.statistics().end());
  result.counters.assign(parameters.counters().begin(), parameters.counters().end());
  return result;
}

// Root of the mean square of a - b, of that of b: rounding spreads over a tensor, and single
// elements of it may be near 0.
double off(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2.0);
    size += std::pow(static_cast<double>(b[i]), 2.0);
  }
  return std::sqrt(difference / std::max(size, 1e-30));
}

// What rounding leaves behind the layers, twice to ten times what was measured. Float32 frozen:
// 5e-7
// and 1e-6. Batch statistics over the 12 pixels of the last layers carry a difference on, and on
// ReLU's other side, so 18 layers give 2e-6 and 5e-6, 50 of them 7e-5 and 3e-2. 16 bits round every
// image and its gradient to 11 or 8 bits.
struct Bounds {
  double embeddings, gradients;
};
Bounds bounds(const Settings& settings) {
  const bool deep_batch = settings.arch == "resnet50" && settings.mode == BatchNormMode::kBatch;
  switch (settings.precision) {
    case Precision::kFp32:
    case Precision::kTf32: return deep_batch ? Bounds{2e-4, 6e-2} : Bounds{1e-5, 5e-5};
    case Precision::kFp16: return {6e-3, 0.3};
    case Precision::kBf16: return {5e-2, 0.7};
  }
  return {};
}

void compare(const Settings& settings) {
  const Result expected = run(Context(2), settings);
  const Result got = run(Context(2, Device{.cuda = true}), settings);
  const Bounds bound = bounds(settings);
  EXPECT_LE(off(got.embeddings, expected.embeddings), bound.embeddings);
  ASSERT_EQ(got.names, expected.names);
  double worst = 0;
  std::string where;
  for (std::size_t p = 0; p < got.names.size(); ++p) {
    const double here = off(got.gradients[p], expected.gradients[p]);
    if (here <= worst) continue;  // NaN goes on
    worst = here;
    where = got.names[p];
  }
  EXPECT_LE(worst, bound.gradients) << where;
  EXPECT_LE(off(got.statistics, expected.statistics), bound.embeddings);
  EXPECT_EQ(got.counters, expected.counters);
}

class HostGpuNetwork
    : public ::testing::TestWithParam<std::tuple<std::string, BatchNormMode, Precision>> {};

TEST_P(HostGpuNetwork, ComputesWhatTheCpuDoes) {
  const auto& [arch, mode, precision] = GetParam();
  if (arch == "resnet50" && mode == BatchNormMode::kBatch && size_of(image_type(precision)) == 2) {
    GTEST_SKIP() << "16 bits through 50 layers on 12 pixels leave nothing to compare";
  }
  compare({.arch = arch, .mode = mode, .precision = precision});
}

std::set<GraphSpec> graphs_asked_for(const NetworkSpec& spec, const Settings& settings,
                                     bool gradients) {
  host_gpu::forget_graphs();
  const Context context(1, Device{.cuda = true});
  take_way(context, settings);
  Parameters parameters;
  Program program(context, parameters, {.gradients = gradients, .precision = settings.precision});
  build_network(program, spec, kBatch, kSide, kSide);
  program.plan();
  const auto& built = host_gpu::graphs_built();
  return {built.begin(), built.end()};
}

// All that the deviceless test validates is run by a node in one of the ways, and nothing else is.
TEST_P(HostGpuNetwork, AsksForTheGraphsThatAreListed) {
  const auto& [arch, mode, precision] = GetParam();
  for (const bool gradients : {true, false}) {
    Settings settings{.arch = arch, .mode = mode, .precision = precision};
    if (!gradients) settings.mode = BatchNormMode::kRunning;
    std::set<GraphSpec> built;
    for (const gpu::BatchNormWay way : gpu::kBatchNormWays) {
      settings.way = way;
      built.merge(graphs_asked_for(network_spec(settings), settings, gradients));
    }
    const Listed listed(network_spec(settings), gradients);
    const auto graphs = graphs_of(listed.program, settings.mode, precision);
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

TEST(HostGpuNetworkForms, EveryWayOfBatchNormalisation) {
  for (const gpu::BatchNormWay way : {gpu::BatchNormWay::kOwn, gpu::BatchNormWay::kSums}) {
    compare({.precision = Precision::kTf32, .way = way});
    compare({.precision = Precision::kFp16, .way = way});
  }
}

TEST(HostGpuNetworkForms, UnfusedLayersAndOtherPoolings) {
  compare({.fuse = false});
  compare({.mode = BatchNormMode::kRunning, .pool = pool_cpu::Global::kMax});
  compare({.mode = BatchNormMode::kRunning, .pool = pool_cpu::Global::kGem});
  compare({.mode = BatchNormMode::kRunning, .keep_all = true});
  compare({.mode = BatchNormMode::kBatch, .keep_all = true});
  compare({.mode = BatchNormMode::kBatch, .precision = Precision::kTf32, .keep_all = true});
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
