// The layers' conformance list on a GPU.
#include "tests/cuda/layer_on_gpu.h"

#include "tests/cuda/gpu.h"

namespace rk {
namespace {

class CudaLayers : public OnGpu {};

TEST_F(CudaLayers, ComputeWhatTheCpuDoes) {
  const Context gpu(1, Device{.cuda = true});
  for (const testing::LayerCase& layer : testing::layer_cases()) {
    SCOPED_TRACE(layer.name);
    testing::compare_with_cpu(layer, gpu);
  }
}

}  // namespace
}  // namespace rk
