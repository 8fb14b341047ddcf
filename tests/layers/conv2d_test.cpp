// Convolutions against the definition in double, in every layout and weight order the layer
// chooses.
#include "layers/conv2d.h"

#include "layers/onednn/convolution_block.h"
#include "tests/support/node_harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace rk {
namespace {

void check(const NodeHarness::Source& x, const Conv2dOptions& o) {
  NodeHarness harness(2, {x}, [&](Program& p, const std::vector<TensorId>& ids) {
    return conv2d(p, ids[0], "conv", o);
  });
  const std::int64_t in = x.shape[3];
  const Shape weight_shape{o.out_channels, in, o.kernel[0], o.kernel[1]};
  Parameters& parameters = harness.parameters();
  const std::vector<float> w = noise(weight_shape.elements(), 1);
  parameters.set(parameters.values(), 0, w.data());
  const std::vector<float> input = noise(x.shape.elements(), 2);
  const std::vector<float> y = harness.forward({input});
  const Shape& out = harness.output_shape();
  ASSERT_EQ(out[1], (x.shape[1] + 2 * o.padding[0] - o.kernel[0]) / o.stride[0] + 1);
  ASSERT_EQ(out[2], (x.shape[2] + 2 * o.padding[1] - o.kernel[1]) / o.stride[1] + 1);
  const auto terms = static_cast<double>(in * o.kernel[0] * o.kernel[1]);
  std::size_t place = 0;
  for (std::int64_t n = 0; n < out[0]; ++n) {
    for (std::int64_t oy = 0; oy < out[1]; ++oy) {
      for (std::int64_t ox = 0; ox < out[2]; ++ox) {
        for (std::int64_t channel = 0; channel < out[3]; ++channel) {
          double sum = 0;
          for (std::int64_t ky = 0; ky < o.kernel[0]; ++ky) {
            for (std::int64_t kx = 0; kx < o.kernel[1]; ++kx) {
              const std::int64_t iy = oy * o.stride[0] + ky - o.padding[0];
              const std::int64_t ix = ox * o.stride[1] + kx - o.padding[1];
              if (iy < 0 || iy >= x.shape[1] || ix < 0 || ix >= x.shape[2]) continue;
              for (std::int64_t c = 0; c < in; ++c) {
                const std::int64_t from = ((n * x.shape[1] + iy) * x.shape[2] + ix) * in + c;
                const std::int64_t at = ((channel * in + c) * o.kernel[0] + ky) * o.kernel[1] + kx;
                sum += static_cast<double>(input[static_cast<std::size_t>(from)]) *
                       static_cast<double>(w[static_cast<std::size_t>(at)]);
              }
            }
          }
          // Rounding of a float32 sum of so many terms below 1.
          ASSERT_NEAR(y[place], sum, 1e-7 * terms) << place;
          ++place;
        }
      }
    }
  }
}

TEST(Conv2d, FollowsItsDefinitionInEveryLayout) {
  const std::int64_t b = convolution_block() > 0 ? convolution_block() : 16;
  check({.shape = Shape{2, 9, 7, 5}}, {7, {3, 3}, {2, 2}, {1, 1}});
  check({.shape = Shape{1, 6, 8, 4}}, {3, {1, 3}, {1, 1}, {0, 1}});
  check({.shape = Shape{1, 8, 6, 4}}, {3, {5, 1}, {2, 1}, {2, 0}});
  check({.shape = Shape{2, 7, 6, 2 * b}, .block = b}, {b, {3, 3}, {1, 1}, {1, 1}});
  check({.shape = Shape{2, 7, 6, b}, .block = b}, {3 * b, {1, 1}, {2, 2}, {0, 0}});
  check({.shape = Shape{2, 7, 6, 2 * b}, .block = b}, {7, {3, 3}, {2, 2}, {1, 1}});
  check({.shape = Shape{2, 7, 6, 2 * b}}, {b, {3, 3}, {1, 1}, {0, 0}});
  check({.shape = Shape{2, 17, 15, 3}, .block = 1}, {2 * b, {7, 7}, {2, 2}, {3, 3}});
}

// The gradient of large images is computed and added a few images at a time: three of six, where
// four would be too few for all; or one by one.
TEST(Conv2d, AddsToTheGradientsOfAllOfManyLargeImages) {
  const std::int64_t b = convolution_block() > 0 ? convolution_block() : 16;
  for (const std::int64_t block : {std::int64_t{0}, b}) {
    for (const auto& [images, width] : {std::pair{6, 32}, std::pair{3, 128}}) {
      const Shape shape{images, 64, width, 64};
      const auto record = [&](Program& p, const std::vector<TensorId>& ids) {
        return conv2d(p, ids[0], "conv", {2 * b, {1, 1}, {1, 1}, {0, 0}});
      };
      const std::vector<float> w = noise(128 * b, 1), before = noise(shape.elements(), 3);
      const auto gradient = [&](EdgeMode mode) {
        NodeHarness harness(2, {{.shape = shape, .block = block}}, record, mode);
        harness.parameters().set(harness.parameters().values(), 0, w.data());
        harness.forward({noise(shape.elements(), 2)});
        return harness.backward(noise(harness.output_shape().elements(), 4), {before})[0];
      };
      const std::vector<float> alone = gradient(EdgeMode::kOverwrite);
      const std::vector<float> added = gradient(EdgeMode::kAccumulate);
      ASSERT_EQ(alone.size(), added.size());
      for (std::size_t i = 0; i < alone.size(); ++i) {
        // Another primitive may add the 32 products up in another order.
        ASSERT_NEAR(added[i], alone[i] + before[i], 1e-5) << images << " images, at " << i;
      }
    }
  }
}

TEST(Conv2d, RefusesAnImageSmallerThanItsKernel) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {});
  const TensorId x = program.input("x", Shape{1, 2, 2, 3});
  EXPECT_THROW(conv2d(program, x, "conv", {4, {5, 5}, {1, 1}, {1, 1}}), std::invalid_argument);
}

}  // namespace
}  // namespace rk
