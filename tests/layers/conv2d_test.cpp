// Convolutions and their gradients against the definition in double, in every layout and weight
// order the layer chooses.
#include "layers/conv2d.h"

#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "layers/onednn/convolution_block.h"
#include "tests/support/node_harness.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace rk {
namespace {

// The sums of products of a convolution, of its gradient and of its weight's, in double.
struct Defined {
  std::vector<double> y, dx, dw;
};

// x (N, H, W, C), w OIHW, dy as `out` (N, OH, OW, O).
Defined by_definition(const Shape& shape, const Shape& out, const Conv2dOptions& o,
                      const std::vector<float>& x, const std::vector<float>& w,
                      const std::vector<float>& dy) {
  const std::int64_t in = shape[3];
  Defined defined{std::vector<double>(dy.size()), std::vector<double>(x.size()),
                  std::vector<double>(w.size())};
  for (std::int64_t output = 0; output < std::ssize(dy); ++output) {
    const std::int64_t channel = output % out[3], pixel = output / out[3];
    const std::int64_t ox = pixel % out[2], oy = pixel / out[2] % out[1];
    const std::int64_t image = pixel / out[2] / out[1];
    const double gradient = dy[at(output)];
    for (std::int64_t ky = 0; ky < o.kernel[0]; ++ky) {
      const std::int64_t iy = oy * o.stride[0] + ky - o.padding[0];
      if (iy < 0 || iy >= shape[1]) continue;
      for (std::int64_t kx = 0; kx < o.kernel[1]; ++kx) {
        const std::int64_t ix = ox * o.stride[1] + kx - o.padding[1];
        if (ix < 0 || ix >= shape[2]) continue;
        for (std::int64_t c = 0; c < in; ++c) {
          const std::size_t from = at(((image * shape[1] + iy) * shape[2] + ix) * in + c);
          const std::size_t by = at(((channel * in + c) * o.kernel[0] + ky) * o.kernel[1] + kx);
          defined.y[at(output)] += static_cast<double>(x[from]) * static_cast<double>(w[by]);
          defined.dx[from] += gradient * static_cast<double>(w[by]);
          defined.dw[by] += gradient * static_cast<double>(x[from]);
        }
      }
    }
  }
  return defined;
}

// `terms`: of the sum of products below 1 that float32 rounds after each addition.
void expect_sums(const std::vector<float>& got, const std::vector<double>& expected,
                 std::int64_t terms) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 1e-7 * static_cast<double>(terms)) << i;
}

NodeHarness::Record recording(const Conv2dOptions& o) {
  return [o](Program& p, const std::vector<TensorId>& ids) { return conv2d(p, ids[0], "conv", o); };
}

void check(const NodeHarness::Source& x, const Conv2dOptions& o, int threads, EdgeMode mode) {
  NodeHarness harness(threads, {x}, recording(o), mode);
  const Shape& out = harness.output_shape();
  ASSERT_EQ(out[1], (x.shape[1] + 2 * o.padding[0] - o.kernel[0]) / o.stride[0] + 1);
  ASSERT_EQ(out[2], (x.shape[2] + 2 * o.padding[1] - o.kernel[1]) / o.stride[1] + 1);
  const Shape weight_shape{o.out_channels, x.shape[3], o.kernel[0], o.kernel[1]};
  Parameters& parameters = harness.parameters();
  const std::vector<float> w = noise(weight_shape.elements(), 1);
  const std::vector<float> input = noise(x.shape.elements(), 2), dy = noise(out.elements(), 3);
  const std::vector<float> held = noise(x.shape.elements(), 4);
  parameters.set(parameters.values(), 0, w.data());
  Defined defined = by_definition(x.shape, out, o, input, w, dy);
  if (mode == EdgeMode::kAccumulate)
    for (std::size_t i = 0; i < held.size(); ++i) defined.dx[i] += static_cast<double>(held[i]);
  const std::int64_t taps = o.kernel[0] * o.kernel[1];
  {
    SCOPED_TRACE("y");
    expect_sums(harness.forward({input}), defined.y, taps * x.shape[3]);
  }
  const std::vector<std::vector<float>> dx =
      mode == EdgeMode::kAccumulate ? harness.backward(dy, {held}) : harness.backward(dy);
  if (x.wants_gradient) {
    SCOPED_TRACE("dx");
    expect_sums(dx[0], defined.dx, taps * o.out_channels + 1);
  }
  SCOPED_TRACE("dw");
  std::vector<float> dw(w.size());
  parameters.get(parameters.gradients(), 0, dw.data());
  expect_sums(dw, defined.dw, out[0] * out[1] * out[2]);
}

// Images and windows as networks have them and as nobody has them; channels in blocks, all side by
// side, or, as the first layer's, in planes.
TEST(Conv2d, FollowsItsDefinitionOnDrawnImages) {
  const std::int64_t b = convolution_block() > 0 ? convolution_block() : 16;
  CounterRandom random(random_seed(), 0, 0);
  int moved = 0;
  for (int drawn = 0; drawn < 300; ++drawn) {
    Conv2dOptions o;
    const bool square = random.below(2) == 0;
    std::array<std::int64_t, 2> size{};
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const bool as_first = square && axis == 1;
      o.kernel[axis] = as_first ? o.kernel[0] : 1 + random.below(random.below(4) == 0 ? 7 : 3);
      o.stride[axis] = as_first ? o.stride[0] : 1 + random.below(3);
      o.padding[axis] = as_first ? o.padding[0] : random.below(o.kernel[axis] / 2 + 1);
      size[axis] = std::max<std::int64_t>(o.kernel[axis] - 2 * o.padding[axis], 1) +
                   random.below(random.below(4) == 0 ? 20 : 8);
    }
    NodeHarness::Source x;
    // A processor without such convolutions reads neither planes nor blocks.
    const std::int64_t kind = convolution_block() > 0 ? random.below(5) : 4;
    if (kind == 0) x.block = 1;
    if (kind == 1 || kind == 2) x.block = b;
    const std::int64_t channels = kind == 0   ? 1 + random.below(4)
                                  : kind <= 3 ? b * (1 + random.below(2))
                                              : 1 + random.below(2 * b);
    x.shape = Shape{1 + random.below(3), size[0], size[1], channels};
    x.wants_gradient = random.below(4) > 0;
    // Planes are read as they lie only where whole blocks are computed from them.
    const bool whole_blocks = kind == 0 || random.below(2) == 0;
    o.out_channels = whole_blocks ? b * (1 + random.below(2)) : 1 + random.below(2 * b);
    const auto threads = static_cast<int>(1 + random.below(3));
    // For some windows over planes or blocks the library has no code of its own on some processors,
    // such as over four planes with AVX-512. The layer then reads channels side by side.
    if (!NodeHarness::reads(threads, {x}, recording(o))) {
      x.block = 0;
      ++moved;
    }
    const bool adds = x.wants_gradient && random.below(2) == 0;
    SCOPED_TRACE(::testing::Message()
                 << "case " << drawn << ": " << x.shape.text() << " in blocks of " << x.block
                 << ", " << o.out_channels << " filters of " << o.kernel[0] << " x " << o.kernel[1]
                 << ", stride " << o.stride[0] << " x " << o.stride[1] << ", padding "
                 << o.padding[0] << " x " << o.padding[1] << ", " << threads << " threads"
                 << (adds ? ", adding to dx" : ""));
    check(x, o, threads, adds ? EdgeMode::kAccumulate : EdgeMode::kOverwrite);
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(moved, 50);  // most are read as they lie
}

// One thread: with several, the library's own way does not end.
TEST(Conv2d, StaysInItsMemoryWhereTheLibraryWouldNot) {
  for (const std::int64_t channels : {1, 3, 4, 6, 7})
    check({.shape = Shape{2, 20, 15, channels}}, {10, {1, 1}, {1, 3}, {0, 0}}, 1,
          EdgeMode::kOverwrite);
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
