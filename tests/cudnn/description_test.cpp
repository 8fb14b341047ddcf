// What cuDNN itself says of the GPU at hand, as h100.json of this folder: RK_GPU_DESCRIPTION=FILE
// keeps it.
#include "engine/base/error.h"
#include "engine/driver/device.h"
#include "layers/cudnn/graph.h"
#include "tests/cuda/gpu.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

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
  EXPECT_NE(gpu.json.find(report.cards.at(0).name), std::string::npos) << gpu.json;
  const GraphSpec spec{.precision = Precision::kFp16,
                       .n = 64,
                       .c = 64,
                       .h = 56,
                       .w = 56,
                       .out_channels = 64,
                       .kernel = {3, 3},
                       .padding = {1, 1}};
  EXPECT_EQ(CudnnGraph(spec, gpu, {}).state(), PlanState::kFinal);
}

}  // namespace
}  // namespace rk
