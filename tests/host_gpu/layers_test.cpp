// The layers' conformance list on the emulated GPU, products, and random programs.
#include "tests/cuda/layer_on_gpu.h"
#include "tests/engine/gemm_cases.h"
#include "tests/layers/program_cases.h"

#include <gtest/gtest.h>

namespace rk::testing {
namespace {

class HostGpuLayers : public ::testing::TestWithParam<LayerCase> {};

TEST_P(HostGpuLayers, ComputeWhatTheCpuDoes) {
  const Context gpu(1, Device{.cuda = true});
  compare_with_cpu(GetParam(), gpu);
}

INSTANTIATE_TEST_SUITE_P(All, HostGpuLayers, ::testing::ValuesIn(layer_cases()),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(HostGpuGemm, PreparedMatchesThreeLoopsInDouble) {
  const Context gpu(1, Device{.cuda = true});
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    for (const DType in : {DType::kFloat32, DType::kFloat16, DType::kBfloat16}) {
      check_prepared_gemm(gpu, in, in, seed);
      check_prepared_gemm(gpu, in, DType::kFloat32, seed);
    }
  }
}

TEST(HostGpuPrograms, AreTheirDefinition) {
  const Context gpu(1, Device{.cuda = true});
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    for (const Precision precision : kPrecisions) {
      check_linear_layers(gpu, precision, seed);
      check_joined_channels(gpu, precision, 0, seed);
    }
  }
}

}  // namespace
}  // namespace rk::testing
