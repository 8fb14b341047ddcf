// `bench step` on the emulated GPU: that it runs, what its roofline counts, and the file of engines
// that --tune writes.
#include "engine/device/cuda/context.h"
#include "layers/conv2d.h"
#include "layers/gpu/gradient_sums.h"
#include "layers/graphs/graph_runner.h"
#include "layers/graphs/plans.h"
#include "layers/networks/network.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/cudnn/engines.h"
#include "tests/support/heard_notes.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/noise_batch.h"
#include "tools/bench/step/bench_step_device.h"
#include "tools/bench/tuning/batchnorm_timing.h"
#include "tools/bench/tuning/gradient_sums_timing.h"
#include "tools/bench/tuning/tune_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace rk {
namespace {

constexpr double kNoEnd = std::numeric_limits<double>::infinity();

struct Enough : std::exception {};

TrainerOptions small() {
  TrainerOptions options = small_trainer("fastap", 4);
  options.schedule.rate = 1e-30;
  options.precision = Precision::kFp16;
  return options;
}

// One convolution by hand: 8 images of 6x6x16 to 32 channels by 3x3, no gradient of the input.
TEST(BenchStepDevice, TheRooflineIsTheLongerOfBytesAndProducts) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {.gradients = true});
  const TensorId x = program.input("x", {8, 6, 6, 16});
  program.set_output(conv2d(program, x, "conv", {32, {3, 3}, {1, 1}, {1, 1}}));
  const double bytes = 2.0 * (8 * 36 * 16 + 8 * 36 * 32 + 32 * 16 * 9);
  const double products = 8.0 * 36 * 32 * 16 * 9;
  EXPECT_DOUBLE_EQ(convolution_floor(program, Precision::kFp16, 1e3, 1e12), 2 * bytes);
  EXPECT_DOUBLE_EQ(convolution_floor(program, Precision::kFp16, 1e12, 1e3), 2 * products);
  EXPECT_DOUBLE_EQ(convolution_floor(program, Precision::kFp32, 1e3, 0), 4 * bytes);
}

TEST(BenchStepDevice, KnowsTheCards) {
  EXPECT_EQ(dense_rate("NVIDIA H200", Precision::kBf16), 989e12 / 2);
  EXPECT_EQ(dense_rate("NVIDIA GH200 480GB", Precision::kBf16), 989e12 / 2);
  EXPECT_EQ(dense_rate("NVIDIA A100-SXM4-80GB", Precision::kTf32), 156e12 / 2);
  EXPECT_EQ(dense_rate("NVIDIA H100 PCIe", Precision::kFp16), 756e12 / 2);
  EXPECT_EQ(dense_rate("another", Precision::kFp32), 0);
  EXPECT_EQ(dense_rate("NVIDIA RTX A1000", Precision::kFp32), 0);  // holds "A100"
}

TEST(BenchStepDevice, RunsWithTheEnginesThatTuningWrote) {
  const Context context(2, Device{.cuda = true});
  const TemporaryFolder folder;
  const std::string path = folder.in("plans.txt");
  std::vector<TunedGraph> tuned;
  const auto keep = [&](const TunedGraph& graph) { tuned.push_back(graph); };
  EXPECT_EQ(tune_plans(context, small(), 1, kNoEnd, path, keep), 0);
  ASSERT_GT(tuned.size(), 20U);
  const GpuPlans plans = GpuPlans::read(path);
  std::map<std::string, std::string> last;  // a normalisation's engine, then its algorithm
  for (const TunedGraph& graph : tuned) last[graph.graph] = graph.engine;
  for (const auto& [graph, engine] : last) EXPECT_EQ(plans.engine(graph), engine) << graph;
  const DeviceStepTimes times = time_device_step(context, small(), 2, 0, path);
  EXPECT_EQ(plans_of(context).environment(), plan_environment(context));
  EXPECT_EQ(plans_of(context).engine(tuned[0].graph), last[tuned[0].graph]);
  EXPECT_TRUE(times.captured);
  EXPECT_GT(times.plans.named, 20);
  EXPECT_EQ(times.plans.taken, times.plans.named);
  EXPECT_GT(times.step.median, 0);
  EXPECT_GT(times.card_ms, 0);
  EXPECT_GT(times.bytes,
            std::size_t{4} << 20);  // ResNet-20 has 272,864 parameters, of four values each
}

// Graphs that move the most bytes come first; what an earlier tuning decided, for or against, is
// not timed again, whichever way batch norm is computed.
TEST(BenchStepDevice, ATuningThatRanOutOfTimeGoesOn) {
  const Context context(2, Device{.cuda = true});
  const TemporaryFolder folder;
  for (const BatchNormMode mode : {BatchNormMode::kBatch, BatchNormMode::kRunning}) {
    TrainerOptions options = small();
    options.batch = 16;  // in batches of a few images the weights outweigh them
    options.batchnorm = mode;
    const std::string path =
        folder.in((mode == BatchNormMode::kBatch ? "train.txt" : "frozen.txt"));
    std::vector<std::string> first;
    const auto keep = [&](const TunedGraph& graph) { first.push_back(graph.graph); };
    const int all = tune_plans(context, options, 1, 0, path, keep);
    EXPECT_GT(all, 10);
    EXPECT_TRUE(first.empty());
    EXPECT_EQ(GpuPlans::read(path).environment(), plan_environment(context));
    // Ends after five results.
    EXPECT_THROW(tune_plans(context, options, 1, kNoEnd, path,
                            [&](const TunedGraph& graph) {
                              keep(graph);
                              if (first.size() == 5) throw Enough{};
                            }),
                 Enough);
    // The widest images are those of the first stage.
    for (const std::string& graph : first) {
      EXPECT_TRUE(holds(graph, "16x16x16x"));
    }
    const int left = tune_plans(context, options, 1, 0, path, keep);
    EXPECT_LT(left, all);
    EXPECT_GE(left, all - 5);
    std::vector<std::string> rest;
    EXPECT_EQ(tune_plans(context, options, 1, kNoEnd, path,
                         [&](const TunedGraph& graph) { rest.push_back(graph.graph); }),
              0);
    EXPECT_FALSE(rest.empty());
    rest.clear();
    EXPECT_EQ(tune_plans(context, options, 1, kNoEnd, path,
                         [&](const TunedGraph& graph) { rest.push_back(graph.graph); }),
              0);
    EXPECT_TRUE(rest.empty()) << rest[0];
  }
}

// Plans of another GPU would be mixed with those of this one.
TEST(BenchStepDevice, PlansOfAnotherGpuAreKept) {
  const Context context(2, Device{.cuda = true});
  const TemporaryFolder folder;
  const std::string path = folder.in("plans.txt");
  GpuPlans before("another GPU, cuDNN 1");
  before.add("a graph", "eng1", "");
  folder.write("plans.txt", before.text());
  EXPECT_EQ(message_of<UsageError>(
                [&] { tune_plans(context, small(), 1, kNoEnd, path, [](const TunedGraph&) {}); }),
            "--tune " + path + ": holds the plans of another GPU, cuDNN 1, this is " +
                plan_environment(context) + "; give another file");
  EXPECT_EQ(file_text(path), before.text());
}

// What no engine can run costs its own result, not those of the others.
TEST(BenchStepDevice, ARefusalDoesNotEndTheTuning) {
  const Context context(2, Device{.cuda = true});
  const TemporaryFolder folder;
  HeardNotes notes;
  for (const BatchNormMode mode : {BatchNormMode::kBatch, BatchNormMode::kRunning}) {
    TrainerOptions options = small();
    options.batchnorm = mode;
    const std::string path =
        folder.in((mode == BatchNormMode::kBatch ? "train.txt" : "frozen.txt"));
    int results = 0;
    host_gpu::offer_engines([](const Graph& graph) {
      const bool runs = !graph.has(Graph::Op::kBatchNorm) && !graph.has(Graph::Op::kWgrad);
      return std::vector<host_gpu::HostEngine>{{.not_run = runs ? "" : "refused"}};
    });
    EXPECT_EQ(tune_plans(context, options, 1, kNoEnd, path, [&](const TunedGraph&) { ++results; }),
              0);
    host_gpu::offer_engines(nullptr);
    EXPECT_GT(results, 10);
    const Context another(2, Device{.cuda = true});  // that has built none of these
    EXPECT_GT(time_device_step(another, options, 1, 0, path).step.median, 0);
  }
  EXPECT_GT(std::ranges::count_if(notes.lines,
                                  [](const std::string& line) {
                                    return line.find("it is not tuned") != std::string::npos;
                                  }),
            3);
}

// The plan that is best for one algorithm behind a convolution must not be part of another's times.
TEST(BenchStepDevice, AnAlgorithmsPlansNameSumsForItsOwnAlone) {
  Parameters parameters;
  const Context context(1);
  Program program(context, parameters,
                  {.gradients = true, .precision = Precision::kFp16, .for_gpu = true});
  NetworkSpec network;
  network.arch = "resnet20";
  build_network(program, network, 8, 16, 16);
  for (const BatchNormUnit& unit : batchnorm_units(program)) {
    GpuPlans before;
    before.add(unit.sums.text(), "eng2", "");
    using enum BatchNormAlgorithm;
    for (const BatchNormAlgorithm algorithm : {kGraphs, kOwn, kSums}) {
      const GpuPlans plans = plans_for(algorithm, unit, "eng3", before);
      EXPECT_EQ(plans.names_engine(unit.sums.text()), algorithm == kSums);
    }
  }
}

// What is measured beside the step takes no memory that the step needs.
TEST(BenchStepDevice, AStepThatFitsIsMeasured) {
  const Context context(2, Device{.cuda = true});
  host_gpu::set_free_bytes(host_gpu::kOfLibraries + (std::size_t{100} << 20));
  const DeviceStepTimes times = time_device_step(context, small(), 1, 0, "");
  host_gpu::set_free_bytes(std::size_t{1} << 46);
  EXPECT_GT(times.copy_rate, 0);
  EXPECT_GT(times.floor_ms, 0);
}

TEST(BenchStepDevice, SaysWhetherStepsWereReplays) {
  const Context context(1, Device{.cuda = true});
  TrainerOptions options = small();
  EXPECT_TRUE(time_device_step(context, options, 1, 0, "").captured);
  options.capture = false;
  EXPECT_FALSE(time_device_step(context, options, 1, 0, "").captured);
}

// The sums that a graph adds up beside a gradient must be those of our own kernel.
TEST(BenchStepDevice, SumsOfGradientsAgree) {
  const Context context(2, Device{.cuda = true});
  Parameters parameters;
  Program program(context, parameters, {.gradients = true, .precision = Precision::kFp16});
  NetworkSpec network;
  network.arch = "resnet20";
  network.batchnorm = BatchNormMode::kRunning;
  build_network(program, network, 8, 16, 16);
  int count = 0;
  for (const Graph& graph : graphs_of(program)) {
    if (!gpu::is_masked_gradient(graph)) continue;
    ++count;
    const GradientSumsTiming timing = time_gradient_sums(context, graph, 1);
    EXPECT_TRUE(timing.agrees) << graph.text() << ": " << timing.error;
    EXPECT_GT(timing.graph_ms, 0);
    EXPECT_GT(timing.kernel_ms, 0);
  }
  EXPECT_GT(count, 5);
}

// Tuning a frozen network decides whether gradients' graphs add up the sums, and the step that
// reads the file follows.
TEST(BenchStepDevice, TuningAFrozenNetworkTriesSumsBesideGradients) {
  const Context context(2, Device{.cuda = true});
  const TemporaryFolder folder;
  const std::string path = folder.in("plans.txt");
  TrainerOptions options = small();
  options.batchnorm = BatchNormMode::kRunning;
  bool takes = false;
  int decided = 0;
  tune_plans(context, options, 1, kNoEnd, path, [&](const TunedGraph& graph) {
    if (graph.graph.find("drelu+sums ") == std::string::npos) return;
    ++decided;
    takes = takes || graph.engine != GpuPlans::kOwnKernels;
  });
  EXPECT_GT(decided, 5);
  const DeviceStepTimes times = time_device_step(context, options, 1, 0, path);
  EXPECT_EQ(takes, times.ways.find("gradients added up") != std::string::npos)
      << GpuPlans::read(path).text() << times.ways;
}

// Behind one convolution: the three algorithms must compute the same, and a wrong one must be seen.
TEST(BenchStepDevice, TheAlgorithmsOfBatchNormalisationAgree) {
  const Context context(2, Device{.cuda = true});
  for (const Precision precision : {Precision::kTf32, Precision::kFp16, Precision::kBf16}) {
    Parameters parameters;
    Program program(context, parameters, {.gradients = true, .precision = precision});
    NetworkSpec network;
    network.arch = "resnet20";
    build_network(program, network, 8, 16, 16);
    const auto units = batchnorm_units(program);
    // The first; one in the first stage, with and without a sum behind it; in each of the others
    // the one that halves, and those behind it, with and without a sum. The shortcuts, and what
    // they are added to, are joined.
    ASSERT_EQ(units.size(), 9U);
    int all = 0;
    for (const BatchNormUnit& unit : units) {
      all += unit.count;
      // Over a few values normalisation amplifies every rounding.
      const Shape& y = unit.convolution.y;
      if (y[0] * y[1] * y[2] < 128) continue;
      const auto timings = time_algorithms(context, unit, {}, "loops", 1);
      for (const AlgorithmTiming& timing : timings) {
        EXPECT_TRUE(timing.agrees)
            << unit.sums.text() << ": " << timing.error << ' ' << timing.gradient_error;
        EXPECT_GT(timing.ms, 0);
      }
      if (precision != Precision::kFp16) continue;
      const auto none = time_algorithms(context, unit, {}, "", 1);
      EXPECT_FALSE(none[static_cast<std::size_t>(BatchNormAlgorithm::kSums)].agrees);
    }
    EXPECT_EQ(all, 21 - 2 * 2);
  }
}

}  // namespace
}  // namespace rk
