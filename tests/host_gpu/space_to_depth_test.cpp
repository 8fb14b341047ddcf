// First convolutions over images whose pixels lie in cells (SpaceToDepth), against the definition
// of a convolution over pixels, in double.
#include "engine/base/colours.h"
#include "engine/device/context.h"
#include "layers/conv_bn.h"
#include "layers/graphs/graph.h"
#include "layers/networks/network.h"
#include "tests/support/node_harness.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace rk {
namespace {

struct Case {
  std::int64_t batch, height, width;
  Conv2dOptions convolution;
  bool folded;

  Shape y() const {
    const auto& [out, kernel, stride, padding, in] = convolution;
    return {batch, (height + 2 * padding[0] - kernel[0]) / stride[0] + 1,
            (width + 2 * padding[1] - kernel[1]) / stride[1] + 1, out};
  }
  std::string text() const {
    const auto& [out, kernel, stride, padding, in] = convolution;
    return fmt::format("{} images of {}x{} -> {}, {}x{}/{}, padding {}x{}{}", batch, height, width,
                       out, kernel[0], kernel[1], stride[0], padding[0], padding[1],
                       folded ? ", folded" : "");
  }
};

Case draw(std::mt19937_64& random) {
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  Case drawn{.batch = between(1, 3), .height = 0, .width = 0, .convolution = {}, .folded = false};
  Conv2dOptions& c = drawn.convolution;
  c.out_channels = between(1, 9);
  c.in_channels = kColours;
  const std::int64_t stride = between(2, 3);
  c.stride = {stride, stride};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    c.kernel[axis] = between(1, 7);
    c.padding[axis] = between(0, std::min<std::int64_t>(c.kernel[axis] - 1, 3));
  }
  drawn.height = std::max(between(1, 20), c.kernel[0]);
  drawn.width = std::max(between(1, 20), c.kernel[1]);
  drawn.folded = between(0, 1) == 1;
  return drawn;
}

struct Results {
  std::vector<double> y, dw;
};

// pixels: (N, H, W, 3); w: OIHW; dy: as y.
Results by_definition(const Case& test, const std::vector<float>& pixels,
                      const std::vector<float>& w, const std::vector<float>& dy) {
  const auto& [out, kernel, stride, padding, in] = test.convolution;
  const Shape y = test.y();
  Results results;
  results.dw.assign(w.size(), 0.0);
  std::size_t next = 0;
  for (std::int64_t n = 0; n < y[0]; ++n) {
    for (std::int64_t i = 0; i < y[1]; ++i) {
      for (std::int64_t j = 0; j < y[2]; ++j) {
        for (std::int64_t o = 0; o < out; ++o) {
          const double g = dy[next++];
          double sum = 0;
          for (std::int64_t c = 0; c < kColours; ++c) {
            for (std::int64_t a = 0; a < kernel[0]; ++a) {
              for (std::int64_t b = 0; b < kernel[1]; ++b) {
                const std::int64_t row = i * stride[0] + a - padding[0];
                const std::int64_t column = j * stride[1] + b - padding[1];
                if (row < 0 || row >= test.height || column < 0 || column >= test.width) continue;
                const double x = pixels[static_cast<std::size_t>(
                    ((n * test.height + row) * test.width + column) * kColours + c)];
                const auto at =
                    static_cast<std::size_t>(((o * kColours + c) * kernel[0] + a) * kernel[1] + b);
                sum += x * static_cast<double>(w[at]);
                results.dw[at] += x * g;
              }
            }
          }
          results.y.push_back(sum);
        }
      }
    }
  }
  return results;
}

// On the emulated GPU, whose tf32 rounds nothing.
Results by_cells(const Case& test, const std::vector<float>& pixels, const std::vector<float>& w,
                 const std::vector<float>& dy) {
  const Context context(1, Device{.cuda = true});
  Parameters parameters;
  Program program(context, parameters, {.gradients = true, .precision = Precision::kTf32});
  const TensorId x = program.input("x", {test.batch, test.height, test.width, 4});
  // If folded, the running statistics are ones that change nothing.
  const TensorId y = test.folded ? conv_bn(program, x, {"conv", "bn", "y"}, test.convolution,
                                           {.mode = BatchNormMode::kRunning, .epsilon = 0})
                                 : conv2d(program, x, "conv", test.convolution);
  program.set_output(y);
  program.plan();
  const SpaceToDepth* cells = program.cells(x);
  if (cells == nullptr) {
    ADD_FAILURE() << "pixels lie by themselves";
    return {};
  }
  parameters.initialise(context, 1);
  parameters.set(parameters.values(), 0, w.data());
  parameters.upload();
  const Shape& stored = program.shape(x);
  float* to = program.value(x);
  context.synchronize();
  // Around the pixels, and between them, are zeros.
  std::fill_n(to, stored.elements(), 0.0F);
  const std::int64_t side = cells->side;
  for (std::int64_t n = 0; n < test.batch; ++n) {
    for (std::int64_t row = 0; row < test.height; ++row) {
      for (std::int64_t column = 0; column < test.width; ++column) {
        const std::int64_t r = row + cells->padding[0], q = column + cells->padding[1];
        if (r / side >= stored[1] || q / side >= stored[2]) continue;  // no tap reaches it
        float* cell = to + ((n * stored[1] + r / side) * stored[2] + q / side) * stored[3];
        for (std::int64_t c = 0; c < kColours; ++c) {
          cell[(r % side * side + q % side) * kColours + c] = pixels[static_cast<std::size_t>(
              ((n * test.height + row) * test.width + column) * kColours + c)];
        }
      }
    }
  }
  program.forward();
  context.synchronize();
  Results results;
  results.y.assign(program.value(y), program.value(y) + test.y().elements());
  std::ranges::copy(dy, program.gradient(y));
  program.backward();
  parameters.download_gradients();
  std::vector<float> dw(w.size());
  parameters.get(parameters.gradients(), 0, dw.data());
  results.dw.assign(dw.begin(), dw.end());
  return results;
}

void expect_near(const char* what, const std::vector<double>& got,
                 const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    // Sums of at most 1,200 float32 products of unit size.
    ASSERT_NEAR(got[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << what << " " << i;
  }
}

TEST(SpaceToDepth, ConvolutionsOverCellsAreThoseOverPixels) {
  std::mt19937_64 random(random_seed());
  for (int drawn = 0; drawn < 300; ++drawn) {
    const Case test = draw(random);
    SCOPED_TRACE(test.text());
    const auto& kernel = test.convolution.kernel;
    const auto stream = static_cast<std::uint64_t>(drawn);
    const std::vector<float> pixels =
        noise(test.batch * test.height * test.width * kColours, 3 * stream);
    const std::vector<float> w =
        noise(test.convolution.out_channels * kColours * kernel[0] * kernel[1], 3 * stream + 1);
    const std::vector<float> dy = noise(test.y().elements(), 3 * stream + 2);
    const Results expected = by_definition(test, pixels, w, dy);
    const Results got = by_cells(test, pixels, w, dy);
    expect_near("y", got.y, expected.y);
    expect_near("dw", got.dw, expected.dw);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

// The text of the first convolution's graph, which is the program's first.
std::string first_graph(const std::string& arch, Precision precision, bool input_gradient = false) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters,
                  {.gradients = true,
                   .input_gradient = input_gradient,
                   .precision = precision,
                   .for_gpu = true});
  NetworkSpec spec;
  spec.arch = arch;
  build_network(program, spec, 2, 224, 224);
  return graphs_of(program)[0].text();
}

TEST(SpaceToDepth, FirstLayersThatMoveByTwoPixelsAreOverCells) {
  EXPECT_EQ(first_graph("resnet50", Precision::kFp16),
            "fp16 conv 2x115x115x16 -> 64, 4x4/1, padding 0x0");
  EXPECT_EQ(first_graph("googlenet", Precision::kBf16),
            "bf16 conv 2x115x115x16 -> 64, 4x4/1, padding 0x0");
  EXPECT_EQ(first_graph("inception_v3", Precision::kTf32),
            "tf32 conv 2x112x112x16 -> 32, 2x2/1, padding 0x0");
  EXPECT_EQ(first_graph("resnet50", Precision::kFp32), "fp32 conv 2x224x224x3 -> 64, 7x7/2");
  EXPECT_EQ(first_graph("resnet50", Precision::kFp16, true), "fp16 conv 2x224x224x4 -> 64, 7x7/2");
  EXPECT_EQ(first_graph("resnet20", Precision::kFp16), "fp16 conv 2x224x224x4 -> 16, 3x3/1");
}

// An input that is laid out for one convolution cannot be read by another.
TEST(SpaceToDepth, AnInputLiesForItsFirstReaderAlone) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {.precision = Precision::kFp16, .for_gpu = true});
  const TensorId x = program.input("x", {1, 32, 32, 4});
  Conv2dOptions options{.out_channels = 8,
                        .kernel = {3, 3},
                        .stride = {2, 2},
                        .padding = {1, 1},
                        .in_channels = kColours};
  conv2d(program, x, "first", options);
  conv2d(program, x, "same", options);
  options.padding = {0, 0};
  EXPECT_THROW(conv2d(program, x, "other", options), std::invalid_argument);
}

}  // namespace
}  // namespace rk
