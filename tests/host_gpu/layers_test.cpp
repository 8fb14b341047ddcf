// The layers' conformance list on a GPU made of the host.
#include "tests/cuda/layer_on_gpu.h"

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

}  // namespace
}  // namespace rk::testing
