// The layers' conformance list on a GPU, products, and random programs.
#include "tests/cuda/layer_on_gpu.h"

#include "tests/cuda/gpu.h"
#include "tests/engine/gemm_cases.h"
#include "tests/layers/program_cases.h"
#include "tests/support/random_seed.h"

namespace rk {
namespace {

// A layer or a shape that a library refuses must not hide the others.
class CudaLayers : public OnGpu {};

TEST_F(CudaLayers, ComputeWhatTheCpuDoes) {
  const Context gpu(1, Device{.cuda = true});
  for (const LayerCase& layer : layer_cases()) {
    SCOPED_TRACE(layer.name);
    EXPECT_NO_THROW(compare_with_cpu(layer, gpu));
  }
}

TEST_F(CudaLayers, ComputeInHalfWhatTheCpuDoes) {
  const Context gpu(1, Device{.cuda = true});
  for (const LayerCase& layer : layer_cases()) {
    if (layer.sources[0].shape.rank() != 4) continue;  // in float32 in every precision
    SCOPED_TRACE(layer.name);
    for (const Precision precision : {Precision::kFp16, Precision::kBf16}) {
      EXPECT_NO_THROW(compare_half_with_cpu(layer, gpu, precision));
    }
  }
}

// A channel that is not a number must not become zeros that the loss takes for an image's.
TEST_F(CudaLayers, NormalisationsAndRelusKeepNanAsTheCpuDoes) {
  const Context gpu(1, Device{.cuda = true});
  for (const LayerCase& layer : layer_cases()) {
    if (!layer.name.starts_with("batchnorm_") && layer.name != "relu") continue;
    SCOPED_TRACE(layer.name);
    EXPECT_NO_THROW(compare_nan_with_cpu(layer, gpu));
  }
}

TEST_F(CudaLayers, ProductsMatchThreeLoopsInDouble) {
  const Context gpu(1, Device{.cuda = true});
  for (const std::uint64_t seed : random_seeds(100)) {
    EXPECT_NO_THROW(check_gemm(gpu, seed)) << seed;
  }
}

TEST_F(CudaLayers, RandomProgramsAreTheirDefinition) {
  const Context gpu(1, Device{.cuda = true});
  for (const std::uint64_t seed : random_seeds(50)) {
    check_linear_layers(gpu, seed);
    for (const Precision precision : kPrecisions) {
      check_joined_channels(gpu, precision, 0, seed);
    }
  }
}

}  // namespace
}  // namespace rk
