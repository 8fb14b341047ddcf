// A normalisation that is folded into its convolution against the two computed apart: what differs
// is rounding alone.
#include "layers/conv_bn.h"

#include "engine/base/random.h"
#include "layers/onednn/convolution_block.h"
#include "tests/support/node_harness.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

namespace rk {
namespace {

struct DrawnConvBn {
  Shape image;
  std::int64_t block = 0, residual_block = 0;  // adjacent channels; 0: all
  Conv2dOptions convolution;
  bool residual = false, relu = false, keep_all = false;
  int threads = 1;
};

DrawnConvBn draw(CounterRandom& random) {
  const std::int64_t b = convolution_block() > 0 ? convolution_block() : 16;
  DrawnConvBn drawn;
  Conv2dOptions& o = drawn.convolution;
  std::array<std::int64_t, 2> size{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    o.kernel[axis] = 1 + random.below(3);
    o.stride[axis] = 1 + random.below(2);
    o.padding[axis] = random.below(o.kernel[axis] / 2 + 1);
    size[axis] = o.kernel[axis] + random.below(8);
  }
  drawn.block = random.below(2) == 0 ? b : 0;
  const std::int64_t channels =
      drawn.block > 0 ? b * (1 + random.below(2)) : 1 + random.below(2 * b);
  drawn.image = Shape{1 + random.below(3), size[0], size[1], channels};
  const bool whole_blocks = random.below(2) == 0;
  o.out_channels = whole_blocks ? b * (1 + random.below(2)) : 1 + random.below(2 * b);
  drawn.residual = random.below(2) == 0;
  drawn.residual_block = whole_blocks && random.below(2) == 0 ? b : 0;
  drawn.relu = random.below(2) == 0;
  drawn.keep_all = random.below(2) == 0;
  drawn.threads = static_cast<int>(1 + random.below(3));
  return drawn;
}

struct Result {
  std::vector<float> y, gradients;  // of x, the residual and all parameters
};

// `given`: the gradient of y.
Result compute(const DrawnConvBn& drawn, bool fold, bool relu, std::vector<float> given) {
  const Context context(drawn.threads);
  Parameters parameters;
  Program program(context, parameters,
                  {.gradients = true, .input_gradient = true, .keep_all = fold && drawn.keep_all});
  const TensorId x = program.input("x", drawn.image, drawn.block);
  const Conv2dOptions& o = drawn.convolution;
  const auto out = [&](int axis, std::size_t i) {
    return (drawn.image[axis] + 2 * o.padding[i] - o.kernel[i]) / o.stride[i] + 1;
  };
  const Shape shape{drawn.image[0], out(1, 0), out(2, 1), o.out_channels};
  const TensorId skip = drawn.residual ? program.input("skip", shape, drawn.residual_block) : -1;
  const BatchNormOptions options{.mode = BatchNormMode::kRunning, .relu = relu, .residual = skip};
  const TensorId y = fold ? conv_bn(program, x, {"conv", "bn", "y"}, o, options)
                          : batchnorm(program, conv2d(program, x, "conv", o), "bn", options);
  program.set_output(y);
  program.plan();
  parameters.initialise(context, 3);
  for (const char* name : {"bn.running_mean", "bn.running_var"}) {
    float* values = parameters.buffer(parameters.declare_buffer(name, o.out_channels, 0.0F));
    const std::vector<float> noisy = noise(o.out_channels, 40);
    for (std::size_t c = 0; c < noisy.size(); ++c) values[c] = 1.0F + 0.5F * noisy[c];
  }
  std::ranges::copy(noise(drawn.image.elements(), 1), program.value(x));
  if (drawn.residual) std::ranges::copy(noise(shape.elements(), 2), program.value(skip));
  program.forward();
  Result result;
  result.y.assign(program.value(y), program.value(y) + shape.elements());
  given.resize(result.y.size());
  std::ranges::copy(given, program.gradient(y));
  program.backward();
  if (fold && drawn.keep_all) {
    EXPECT_TRUE(std::ranges::equal(given, std::span(program.gradient(y), given.size())))
        << "was not kept";
  }
  const auto add = [&](const float* from, std::int64_t count) {
    result.gradients.insert(result.gradients.end(), from, from + count);
  };
  add(program.gradient(x), drawn.image.elements());
  if (drawn.residual) add(program.gradient(skip), shape.elements());
  add(parameters.gradients().data(), static_cast<std::int64_t>(parameters.flat_elements()));
  return result;
}

void expect_close(const std::vector<float>& folded, const std::vector<float>& apart) {
  ASSERT_EQ(folded.size(), apart.size());
  for (std::size_t i = 0; i < folded.size(); ++i) {
    // Sums of up to 300 products; folding rounds the weights once more.
    ASSERT_NEAR(folded[i], apart[i], 2e-5 * (1 + std::abs(apart[i]))) << i;
  }
}

TEST(ConvBn, FoldedEqualsPlain) {
  CounterRandom random(random_seed(), 0, 0);
  for (int i = 0; i < 100; ++i) {
    const DrawnConvBn drawn = draw(random);
    SCOPED_TRACE(testing::Message()
                 << "case " << i << ": " << drawn.image.text() << " in blocks of " << drawn.block
                 << ", " << drawn.convolution.out_channels << " filters of "
                 << drawn.convolution.kernel[0] << " x " << drawn.convolution.kernel[1]
                 << ", stride " << drawn.convolution.stride[0] << " x "
                 << drawn.convolution.stride[1] << (drawn.relu ? ", ReLU" : "")
                 << (drawn.residual ? ", residual" : "") << ", " << drawn.threads << " threads");
    // No gradient where rounding decides whether ReLU lets it pass.
    const std::vector<float> before = compute(drawn, false, false, {}).y;
    std::vector<float> given = noise(std::ssize(before), 3);
    for (std::size_t k = 0; k < given.size(); ++k)
      if (std::abs(before[k]) < 1e-4F) given[k] = 0;
    const Result folded = compute(drawn, true, drawn.relu, given);
    const Result apart = compute(drawn, false, drawn.relu, given);
    {
      SCOPED_TRACE("y");
      expect_close(folded.y, apart.y);
    }
    SCOPED_TRACE("gradients");
    expect_close(folded.gradients, apart.gradients);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace rk
