// Which engine runs a graph, on an emulated GPU that has those a test says.
#include "layers/graphs/graph_runner.h"

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/device/cuda/context.h"
#include "layers/graphs/engine_timing.h"
#include "tests/host_gpu/cuda/device.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/cudnn/engines.h"
#include "tests/support/heard_notes.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"
#include "tests/support/within.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rk {
namespace {

using host_gpu::HostEngine;

Graph convolution(std::int64_t channels) {
  Graph graph(Precision::kFp32);
  const auto x = graph.read(GraphRole::kX, {2, 6, 6, channels});
  const auto w = graph.read(GraphRole::kW, {8, 3, 3, channels});
  graph.write(graph.conv(x, w, {.padding = {1, 1}}), GraphRole::kY);
  return graph;
}

class GraphRunnerTest : public ::testing::Test {
 protected:
  ~GraphRunnerTest() override {
    host_gpu::offer_engines(nullptr);
    host_gpu::fault(false);
  }

  static void offer(const std::vector<HostEngine>& engines) {
    host_gpu::offer_engines([engines](const Graph&) { return engines; });
  }
  static GpuPlans plans(const Context& gpu) { return GpuPlans(plan_environment(gpu)); }

  const HeardNotes notes_;
};

// What the comment at GraphRunner and build_engine()'s say, directly.
std::optional<std::string> expected_engine(const std::vector<HostEngine>& engines,
                                           const std::string& asked_for) {
  for (const std::string& name : {asked_for, std::string()}) {
    for (const bool compiles : {false, true}) {
      for (const HostEngine& engine : engines) {
        if (!name.empty() && engine.name != name) continue;
        if (engine.compiles == compiles && engine.not_built.empty()) return engine.name;
      }
    }
  }
  return std::nullopt;
}

TEST_F(GraphRunnerTest, DrawnEnginesAreChosenByTheirDefinition) {
  const std::uint64_t seed = random_seed();
  const Graph graph = convolution(4);
  int none = 0, compiled = 0, named = 0;
  for (std::uint64_t round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    CounterRandom random(seed, 0, round);
    std::vector<HostEngine> engines;
    for (std::int64_t e = 1 + random.below(5); e > 0; --e) {
      HostEngine engine{.name = fmt::format("eng{}", random.below(6)),
                        .compiles = random.below(2) == 0};
      if (random.below(2) == 0) {
        engine.not_built = random.below(3) == 0 ? "Deselected" : fmt::format("reason {}", e);
      }
      engines.push_back(engine);
    }
    offer(engines);
    const Context gpu(1, Device{.cuda = true});
    const std::string asked_for = random.below(3) == 0 ? "" : fmt::format("eng{}", random.below(6));
    GpuPlans table = plans(gpu);
    if (!asked_for.empty()) table.add(graph.text(), asked_for, "");
    set_plans(gpu, table);
    const std::optional<std::string> expected = expected_engine(engines, asked_for);
    if (!expected) {
      EXPECT_TRUE(message_of<DeviceError>([&] {
                    GraphRunner(gpu, graph);
                  }).starts_with("cuDNN: " + graph.text() + ": plan: "));
      ++none;
      continue;
    }
    EXPECT_EQ(GraphRunner(gpu, graph).engine(), *expected);
    const PlansTaken taken = plans_taken(gpu);
    EXPECT_EQ(taken.named, asked_for.empty() ? 0 : 1);
    EXPECT_EQ(taken.taken, *expected == asked_for ? 1 : 0);
    named += taken.taken;
    compiled += std::ranges::all_of(engines, &HostEngine::compiles) ? 1 : 0;
  }
  // On average 29, 19 and 25, with standard deviations of 5.
  EXPECT_GT(none, 0);
  EXPECT_GT(compiled, 0);
  EXPECT_GT(named, 0);
}

TEST_F(GraphRunnerTest, OfSeveralRefusalsOneWithAReasonIsSaid) {
  offer({{.compiles = true, .not_built = "Deselected by a note"},
         {.compiles = true, .not_built = "the compiler is missing"},
         {.compiles = true, .not_built = "another reason"}});
  const Context gpu(1, Device{.cuda = true});
  EXPECT_EQ(message_of<DeviceError>([&] { GraphRunner(gpu, convolution(4)); }),
            "cuDNN: " + convolution(4).text() + ": plan: the compiler is missing");
}

// Nodes that run the same graph share its plan; another engine for it is another plan.
TEST_F(GraphRunnerTest, AGraphIsBuiltOncePerContextAndEngine) {
  offer({{.name = "a"}, {.name = "b"}});
  const Context gpu(1, Device{.cuda = true});
  host_gpu::forget_graphs();
  const GraphRunner one(gpu, convolution(4)), two(gpu, convolution(4)), other(gpu, convolution(5));
  EXPECT_TRUE(GraphRunner::exists(gpu, convolution(4), ""));
  EXPECT_EQ(host_gpu::graphs_built().size(), 2U);
  GpuPlans table = plans(gpu);
  table.add(convolution(4).text(), "b", "");
  set_plans(gpu, table);
  EXPECT_EQ(GraphRunner(gpu, convolution(4)).engine(), "b");
  EXPECT_EQ(GraphRunner(gpu, convolution(5)).engine(), "a");
  EXPECT_EQ(one.engine(), "a");
  EXPECT_EQ(host_gpu::graphs_built().size(), 3U);
  const Context another(1, Device{.cuda = true});
  const GraphRunner again(another, convolution(4));
  EXPECT_EQ(host_gpu::graphs_built().size(), 4U);
}

TEST_F(GraphRunnerTest, ARefusalIsAskedForAndSaidOnce) {
  int asked = 0;
  host_gpu::refuse_graphs([&](const Graph& graph) {
    ++asked;
    return graph == convolution(4);
  });
  const Context gpu(1, Device{.cuda = true});
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(GraphRunner::exists(gpu, convolution(4), "it is computed in parts"));
    EXPECT_TRUE(GraphRunner::exists(gpu, convolution(5), "it is computed in parts"));
  }
  EXPECT_EQ(asked, 2) << "once a graph";
  ASSERT_EQ(notes_.lines.size(), 1U);
  EXPECT_TRUE(holds(notes_.lines[0], convolution(4).text() + ": engines: none; it is computed in"));
}

// Some refusals come only with the first run, even of a graph that was built long before.
TEST_F(GraphRunnerTest, AGraphThatCannotRunDoesNotExist) {
  host_gpu::offer_engines([](const Graph& graph) -> std::vector<HostEngine> {
    return {{.not_run = graph == convolution(4) ? "no kernel image" : ""}};
  });
  const Context gpu(2, Device{.cuda = true});
  build_graphs(gpu, {convolution(4), convolution(5)}, {});
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(GraphRunner::exists(gpu, convolution(4), "it is computed in parts"));
    EXPECT_TRUE(GraphRunner::exists(gpu, convolution(5), "it is computed in parts"));
  }
  ASSERT_EQ(notes_.lines.size(), 1U);
  EXPECT_TRUE(holds(notes_.lines[0], ": run: no kernel image; it is computed in parts"));
}

// A step that leaves no memory free is none the worse for it.
TEST_F(GraphRunnerTest, WithoutMemoryAGraphIsNotTried) {
  offer({{.not_run = "no kernel image"}});
  const Context gpu(2, Device{.cuda = true});
  host_gpu::set_free_bytes(host_gpu::kOfLibraries + 1000);
  EXPECT_TRUE(GraphRunner::exists(gpu, convolution(4), "it is computed in parts"));
  host_gpu::set_free_bytes(host_gpu::kTotal);
  EXPECT_FALSE(GraphRunner::exists(gpu, convolution(4), "it is computed in parts"));
}

TEST_F(GraphRunnerTest, GraphsAreBuiltInParallelAndThoseThatCannotAreLeftOut) {
  host_gpu::refuse_graphs([](const Graph& graph) { return graph == convolution(7); });
  const Context gpu(3, Device{.cuda = true});
  std::vector<Graph> graphs;
  for (std::int64_t c = 1; c <= 20; ++c) graphs.push_back(convolution(c));
  const GraphRunner before(gpu, graphs[2]);
  host_gpu::forget_graphs();
  std::int64_t last = 0;
  build_graphs(gpu, graphs, [&](std::int64_t done, std::int64_t all) {
    EXPECT_TRUE(last <= done && done <= all && all == 19) << done << " of " << all;
    last = done;
  });
  EXPECT_EQ(last, 19);
  std::set<std::string> built;
  for (const Graph& graph : host_gpu::graphs_built()) built.insert(graph.text());
  EXPECT_EQ(built.size(), 18U);
  EXPECT_EQ(host_gpu::graphs_built().size(), 18U);
  host_gpu::forget_graphs();
  for (const Graph& graph : graphs) {
    if (graph == convolution(7)) {
      EXPECT_THROW(GraphRunner(gpu, graph), DeviceError);
    } else {
      const GraphRunner ready(gpu, graph);
    }
  }
  EXPECT_TRUE(host_gpu::graphs_built().empty());
  build_graphs(gpu, {}, [](std::int64_t, std::int64_t) { ADD_FAILURE(); });
}

// As where a signal asks to stop.
TEST_F(GraphRunnerTest, WhatProgressThrowsEndsTheBuilding) {
  const Context gpu(2, Device{.cuda = true});
  std::vector<Graph> graphs;
  for (std::int64_t c = 1; c <= 20; ++c) graphs.push_back(convolution(c));
  struct Stopped : std::exception {};
  EXPECT_THROW(build_graphs(gpu, graphs, [](std::int64_t, std::int64_t) { throw Stopped(); }),
               Stopped);
}

// An error that is no refusal ends the building, in the thread that asked for it.
TEST_F(GraphRunnerTest, AnErrorWhileBuildingIsThrown) {
  host_gpu::offer_engines([](const Graph& graph) -> std::vector<HostEngine> {
    if (graph == convolution(3)) throw std::bad_alloc();
    return {{}};
  });
  const Context gpu(2, Device{.cuda = true});
  std::vector<Graph> graphs;
  for (std::int64_t c = 1; c <= 6; ++c) graphs.push_back(convolution(c));
  EXPECT_THROW(build_graphs(gpu, graphs, {}), std::bad_alloc);
}

TEST_F(GraphRunnerTest, PlansOfAnotherGpuAreLeftWithANote) {
  offer({{.name = "a"}, {.name = "b"}});
  const Context gpu(1, Device{.cuda = true});
  GpuPlans other("another GPU, cuDNN 1");
  set_plans(gpu, other);
  EXPECT_TRUE(notes_.lines.empty()) << "it names nothing";
  other.add(convolution(4).text(), "b", "");
  set_plans(gpu, other);
  ASSERT_EQ(notes_.lines.size(), 1U);
  EXPECT_TRUE(holds(notes_.lines[0], "the plans are of another GPU, cuDNN 1, this is "));
  EXPECT_EQ(GraphRunner(gpu, convolution(4)).engine(), "a");
}

TEST_F(GraphRunnerTest, EveryTensorNeedsAPlace) {
  const Context gpu(1, Device{.cuda = true});
  GraphRunner runner(gpu, convolution(4));
  const Memory memory = gpu.allocate(std::size_t{4} << 10);
  EXPECT_EQ(
      message_of<std::invalid_argument>([&] {
        runner.bind({{GraphRole::kX, memory.data()}, {GraphRole::kW, memory.data()}}, nullptr);
      }),
      fmt::format("[gpu graph] {} lacks {}", convolution(4).text(), name_of(GraphRole::kY)));
  EXPECT_THROW(GraphRunner(Context(1), convolution(4)), std::invalid_argument);
}

// The fastest of those that agree with the first is taken; what cannot be built or run is left out.
TEST_F(GraphRunnerTest, TheFastestEngineThatAgreesIsTaken) {
  // Far apart: a busy machine may take one for three times as slow.
  offer({{.name = "eng0", .passes = 100},
         {.name = "eng1", .factor = 1.5},
         {.name = "eng2", .not_built = "no"},
         {.name = "eng3", .not_run = "no"},
         {.name = "eng4", .passes = 4},
         {.name = "eng5", .passes = 60},
         {.name = "eng6", .compiles = true}});
  const Context gpu(1, Device{.cuda = true});
  const GpuPlans::Timing timing = time_engines(gpu, convolution(4), 3);
  EXPECT_EQ(timing.graph, convolution(4).text());
  std::vector<std::string> names;
  for (const auto& engine : timing.engines) names.push_back(engine.name);
  EXPECT_EQ(names, (std::vector<std::string>{"eng0", "eng1", "eng4", "eng5"}));
  EXPECT_EQ(timing.taken, 2U);
  EXPECT_FALSE(timing.engines[1].agrees);
  // Rounding of the results to float32.
  EXPECT_NEAR(timing.engines[1].error, 0.5, 1e-6);
  EXPECT_EQ(timing.engines[3].error, 0.0);
  EXPECT_TRUE(timing.engines[2].agrees);
  ASSERT_EQ(notes_.lines.size(), 1U);
  EXPECT_TRUE(holds(notes_.lines[0], "run: no; eng3 is left out"));
}

// After an illegal address nothing runs any more, and no engine has refused anything.
TEST_F(GraphRunnerTest, AnEngineThatBreaksTheGpuEndsTheTuning) {
  offer({{.name = "eng0"}, {.name = "eng1", .faults = true}, {.name = "eng2"}});
  const Context gpu(1, Device{.cuda = true});
  const std::string error = message_of<DeviceFault>([&] { time_engines(gpu, convolution(4), 3); });
  EXPECT_TRUE(error.starts_with(convolution(4).text() + ": eng1: [the GPU's work] ")) << error;
  EXPECT_TRUE(notes_.lines.empty()) << notes_.lines[0];
}

// As cuDNN does, which says so under a code of its own.
TEST_F(GraphRunnerTest, ARefusalByAGpuThatFailedIsNone) {
  offer({{.name = "eng0"}, {.name = "eng1", .not_run = "no", .faults = true}, {.name = "eng2"}});
  const Context gpu(1, Device{.cuda = true});
  std::string error = message_of<DeviceFault>([&] { time_engines(gpu, convolution(4), 3); });
  EXPECT_TRUE(error.starts_with(convolution(4).text() + ": eng1: [the GPU's work] ")) << error;
  host_gpu::fault(false);
  offer({{.name = "eng0", .not_run = "no", .faults = true}});
  const Context another(1, Device{.cuda = true});
  error = message_of<DeviceFault>(
      [&] { GraphRunner::exists(another, convolution(4), "it is computed in parts"); });
  EXPECT_TRUE(error.starts_with(convolution(4).text() + ": [the GPU's work] ")) << error;
  EXPECT_TRUE(notes_.lines.empty()) << notes_.lines[0];
}

TEST_F(GraphRunnerTest, AGraphThatBreaksTheGpuIsNotComputedInParts) {
  offer({{.name = "eng0", .faults = true}});
  const Context gpu(1, Device{.cuda = true});
  const std::string error = message_of<DeviceFault>(
      [&] { GraphRunner::exists(gpu, convolution(4), "it is computed in parts"); });
  EXPECT_TRUE(error.starts_with(convolution(4).text() + ": [the GPU's work] ")) << error;
  EXPECT_TRUE(notes_.lines.empty()) << notes_.lines[0];
}

// It would be the fastest, and find the result of the engine before it in its place.
TEST_F(GraphRunnerTest, AnEngineThatWritesNothingDoesNotAgree) {
  offer({{.name = "eng0"}, {.name = "eng1", .passes = 0}, {.name = "eng2"}});
  const Context gpu(1, Device{.cuda = true});
  const GpuPlans::Timing timing = time_engines(gpu, convolution(4), 3);
  ASSERT_EQ(timing.engines.size(), 3U);
  EXPECT_FALSE(timing.engines[1].agrees);
  EXPECT_EQ(timing.engines[1].error, 1.0);
  EXPECT_TRUE(timing.engines[2].agrees);
  EXPECT_NE(timing.taken, 1U);
}

// If the first cannot run, the next one that can is what the others are compared with.
TEST_F(GraphRunnerTest, AnEngineThatCannotRunIsNoReference) {
  offer({{.name = "eng0", .not_run = "no"},
         {.name = "eng1", .factor = 2, .passes = 5},
         {.name = "eng2"},
         {.name = "eng3", .factor = 2}});
  const Context gpu(1, Device{.cuda = true});
  const GpuPlans::Timing timing = time_engines(gpu, convolution(4), 3);
  ASSERT_EQ(timing.engines.size(), 3U);
  EXPECT_TRUE(timing.engines[0].agrees);
  EXPECT_FALSE(timing.engines[1].agrees);
  EXPECT_TRUE(timing.engines[2].agrees);
  EXPECT_EQ(timing.taken, 2U);
}

TEST_F(GraphRunnerTest, CompiledEnginesAreTimedIfNoOtherCanBeBuilt) {
  offer({{.name = "eng0", .not_built = "no"},
         {.name = "eng1", .compiles = true, .passes = 10},
         {.name = "eng2", .compiles = true, .not_built = "no"},
         {.name = "eng3", .compiles = true}});
  const Context gpu(1, Device{.cuda = true});
  const GpuPlans::Timing timing = time_engines(gpu, convolution(4), 3);
  ASSERT_EQ(timing.engines.size(), 2U);
  EXPECT_EQ(timing.engines[timing.taken].name, "eng3");
}

// In fp32 the heuristics begin with dozens of engines that round to TF32, which such a graph bars.
TEST_F(GraphRunnerTest, EnginesThatCannotBeBuiltTakeNobodysPlace) {
  const Context gpu(1, Device{.cuda = true});
  for (const bool compiles : {false, true}) {
    SCOPED_TRACE(compiles);
    std::vector<HostEngine> engines;
    std::vector<std::string> expected;
    for (int i = 0; i < 60; ++i) {
      engines.push_back({.name = fmt::format("eng{}_k={}", i / 8, i), .compiles = compiles});
      if (i < 30 || i % 2 == 0) engines.back().not_built = "barred";
    }
    offer(engines);
    const GpuPlans::Timing timing = time_engines(gpu, convolution(4), 1);
    std::vector<std::string> timed;
    for (const auto& engine : timing.engines) timed.push_back(engine.name);
    EXPECT_EQ(timed.size(), compiles ? 8U : 12U);
    EXPECT_TRUE(std::ranges::is_sorted(timed)) << fmt::format("{}", fmt::join(timed, " "));
    EXPECT_EQ(timed.front(), "eng3_k=31");
  }
}

TEST_F(GraphRunnerTest, WithoutAnEngineThatRunsNothingIsTimed) {
  const Context gpu(1, Device{.cuda = true});
  const std::string said = "cuDNN: " + convolution(4).text() + ": no engine runs it here";
  for (const HostEngine& engine : {HostEngine{.not_built = "no"}, HostEngine{.not_run = "no"}}) {
    offer({engine});
    EXPECT_EQ(message_of<DeviceError>([&] { time_engines(gpu, convolution(4), 1); }), said);
  }
}

}  // namespace
}  // namespace rk
