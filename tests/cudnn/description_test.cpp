// What cuDNN itself says of the GPU at hand, in the form of this folder's h100.json:
// RK_GPU_DESCRIPTION=FILE writes it to a file.
#include "engine/base/error.h"
#include "engine/driver/device.h"
#include "layers/networks/network.h"
#include "tests/cuda/gpu.h"
#include "tests/cudnn/described_graph.h"
#include "tests/support/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace rk {
namespace {

class GpuDescribed : public OnGpu {};

TEST_F(GpuDescribed, GraphsAreBuiltForItAsForTheGpuItself) {
  const GpuReport report = probe_gpus();
  const GpuDescription gpu = describe_gpu(0, report.cards.at(0).compute_capability);
  if (const char* path = std::getenv("RK_GPU_DESCRIPTION")) {
    std::ofstream file(path);
    file << gpu.json << '\n';
    file.flush();
    ASSERT_TRUE(file) << path << " cannot be written";
  }
  EXPECT_TRUE(holds(gpu.json, report.cards.at(0).name));
  Graph graph(Precision::kFp16);
  const auto x = graph.read(GraphRole::kX, {64, 56, 56, 64});
  const auto w = graph.read(GraphRole::kW, {64, 3, 3, 64});
  graph.write(graph.conv(x, w, {.padding = {1, 1}}), GraphRole::kY);
  EXPECT_EQ(DescribedGraph(graph, gpu, true).state(), PlanState::kFinal);
}

// A GPU at hand has engines that a described one lacks; RK_GPU_ENGINES=FILE lists them for the
// graphs of a training step.
TEST_F(GpuDescribed, HasTheEnginesOfItsDescription) {
  const GpuReport report = probe_gpus();
  const GpuDescription gpu = describe_gpu(0, report.cards.at(0).compute_capability);
  const char* path = std::getenv("RK_GPU_ENGINES");
  std::ofstream file(path != nullptr ? path : "/dev/null");
  int graphs = 0, engines = 0, described = 0;
  for (const BatchNormMode mode : {BatchNormMode::kBatch, BatchNormMode::kRunning}) {
    const Context context(1);
    Parameters parameters;
    Program program(context, parameters,
                    {.gradients = true, .precision = Precision::kFp16, .for_gpu = true});
    NetworkSpec network;
    network.batchnorm = mode;
    build_network(program, network, 256, 224, 224);
    for (const Graph& graph : graphs_of(program)) {
      ++graphs;
      const std::vector<std::string> here = engines_at_hand(graph);
      const std::vector<std::string> there = engines_of(graph, gpu);
      file << graph.text() << '\n';
      for (const std::string& engine : here) {
        const bool both = std::ranges::find(there, engine) != there.end();
        ++engines;
        described += both ? 1 : 0;
        file << fmt::format("  {}{}\n", engine, both ? "" : ", here alone");
      }
      file.flush();  // what is known by then remains if the test is cut off
      // The GPU must have an engine for whatever is accepted for its description.
      EXPECT_FALSE(here.empty()) << graph.text();
    }
  }
  fmt::print("{} graphs, {} engines, {} of them of the described GPU, too\n", graphs, engines,
             described);
  ASSERT_TRUE(file) << path << " cannot be written";
}

}  // namespace
}  // namespace rk
