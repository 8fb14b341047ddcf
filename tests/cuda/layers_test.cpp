// The layers' conformance list on a GPU, products, and random programs.
#include "tests/cuda/layer_on_gpu.h"

#include "tests/cuda/gpu.h"
#include "tests/engine/gemm_cases.h"
#include "tests/layers/program_cases.h"

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

TEST_F(CudaLayers, PreparedProductsMatchThreeLoopsInDouble) {
  const Context gpu(1, Device{.cuda = true});
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    for (const DType in : {DType::kFloat32, DType::kFloat16, DType::kBfloat16}) {
      // A shape that the library refuses does not hide the others.
      EXPECT_NO_THROW(testing::check_prepared_gemm(gpu, in, in, seed)) << seed;
      EXPECT_NO_THROW(testing::check_prepared_gemm(gpu, in, DType::kFloat32, seed)) << seed;
    }
  }
}

TEST_F(CudaLayers, RandomProgramsAreTheirDefinition) {
  const Context gpu(1, Device{.cuda = true});
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    for (const Precision precision : kPrecisions) {
      testing::check_linear_layers(gpu, precision, seed);
      testing::check_joined_channels(gpu, precision, 0, seed);
    }
  }
}

}  // namespace
}  // namespace rk
