#include "tools/bench/convolution_layouts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "layers/networks/network.h"

namespace rk {
namespace {

TEST(ConvolutionLayouts, EveryConvolutionIsCountedAndNoChoiceBeatsTheLeast) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {.gradients = true});
  NetworkSpec spec;
  spec.arch = "resnet18";
  spec.dim = 8;
  build_network(program, spec, 2, 32, 32);
  program.plan();

  const LayoutComparison comparison = compare_layouts(context, program, 1);
  int convolutions = 0;
  for (const ConvolutionTimes& times : comparison.convolutions) {
    convolutions += times.count;
    EXPECT_EQ(times.ms.size(), comparison.layouts.size()) << times.shape;
    EXPECT_TRUE(std::isfinite(times.ms[0])) << times.shape << ": the chosen layout is slow code";
  }
  EXPECT_EQ(convolutions, 20);  // 16 in the blocks, 3 downsamples, the first
  EXPECT_GT(comparison.least, 0.0);
  for (const LayoutTime& time : comparison.layouts) {
    if (time.complete) {
      EXPECT_GE(time.total, comparison.least * (1 - 1e-12)) << time.layout;
    }
  }
}

}  // namespace
}  // namespace rk
