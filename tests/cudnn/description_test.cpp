// What cuDNN itself says of the GPU at hand, as h100.json of this folder: RK_GPU_DESCRIPTION=FILE
// keeps it.
#include "engine/base/error.h"
#include "engine/driver/device.h"
#include "tests/cuda/gpu.h"
#include "tests/cudnn/described_graph.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace rk {
namespace {

class GpuDescribed : public OnGpu {};

TEST_F(GpuDescribed, GraphsAreBuiltForItAsForTheGpuItself) {
  const GpuReport report = probe_gpus();
  const testing::GpuDescription gpu =
      testing::describe_gpu(0, report.cards.at(0).compute_capability);
  if (const char* path = std::getenv("RK_GPU_DESCRIPTION")) {
    std::ofstream file(path);
    file << gpu.json << '\n';
    file.flush();
    ASSERT_TRUE(file) << path << " cannot be written";
  }
  EXPECT_NE(gpu.json.find(report.cards.at(0).name), std::string::npos) << gpu.json;
  Graph graph(Precision::kFp16);
  const auto x = graph.read(GraphRole::kX, {64, 56, 56, 64});
  const auto w = graph.read(GraphRole::kW, {64, 3, 3, 64});
  graph.write(graph.conv(x, w, {.padding = {1, 1}}), GraphRole::kY);
  EXPECT_EQ(testing::DescribedGraph(graph, gpu, true).state(), testing::PlanState::kFinal);
}

}  // namespace
}  // namespace rk
