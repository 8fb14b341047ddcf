// The emulated GPU when it rounds as a card does; a network is then within the bounds that tests on
// a card have.
#include "tests/host_gpu/rounding.h"

#include "engine/base/random.h"
#include "engine/device/gemm.h"
#include "layers/conv2d.h"
#include "tests/cuda/network_on_gpu.h"
#include "tests/support/node_harness.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace rk {
namespace {

// Rounds as a card does, or does not, while it lives.
class AsACard {
 public:
  explicit AsACard(std::optional<std::uint64_t> seed) { host_gpu::round_as_a_card(seed); }
  ~AsACard() { host_gpu::round_as_a_card(before_); }
  AsACard(const AsACard&) = delete;
  AsACard& operator=(const AsACard&) = delete;

 private:
  std::optional<std::uint64_t> before_ = host_gpu::rounding_seed();
};

TEST(Rounding, Tf32KeepsTenBits) {
  constexpr double kUnit = 0x1p-10;
  {
    const AsACard even(2);
    EXPECT_EQ(host_gpu::as_tf32(1 + 0.5 * kUnit), 1);
    EXPECT_EQ(host_gpu::as_tf32(1 + 1.5 * kUnit), 1 + 2 * kUnit);
    EXPECT_EQ(host_gpu::as_tf32(-1 - 0.75 * kUnit), -1 - kUnit);
    EXPECT_EQ(host_gpu::as_tf32(3 * kUnit), 3 * kUnit);
    EXPECT_EQ(host_gpu::as_tf32(-HUGE_VAL), -HUGE_VAL);
    EXPECT_TRUE(std::isnan(host_gpu::as_tf32(std::numeric_limits<double>::quiet_NaN())));
  }
  const AsACard odd(3);
  EXPECT_EQ(host_gpu::as_tf32(1 + 1.75 * kUnit), 1 + kUnit);
  EXPECT_EQ(host_gpu::as_tf32(-1 - 1.75 * kUnit), -1 - kUnit);
}

// Off by what float32 is when it adds up in the order of the indices and in the opposite one.
TEST(Rounding, SumsAreOffAsInAnotherOrder) {
  constexpr int kSums = 200, kTerms = 1000;
  CounterRandom random(random_seed(), 0, 0);
  double emulated = 0, in_float = 0;  // squares
  for (int s = 0; s < kSums; ++s) {
    std::vector<float> terms;
    for (int t = 0; t < kTerms; ++t) terms.push_back(static_cast<float>(random.uniform(-1, 1)));
    const AsACard card(static_cast<std::uint64_t>(s));
    host_gpu::Sum sum;
    double exact = 0;
    float forward = 0, backward = 0;
    for (std::size_t t = 0; t < kTerms; ++t) {
      sum.add(static_cast<double>(terms[t]));
      exact += static_cast<double>(terms[t]);
      forward += terms[t];
      backward += terms[kTerms - 1 - t];
    }
    EXPECT_EQ(sum.total(), sum.total());
    emulated += std::pow(sum.total() - exact, 2.0);
    in_float += std::pow(static_cast<double>(forward) - static_cast<double>(backward), 2.0);
  }
  EXPECT_LE(emulated, 9 * in_float);
  EXPECT_GE(emulated, in_float / 9);
}

TEST(Rounding, ExactSumsStay) {
  const AsACard card(1);
  host_gpu::Sum sum;
  for (int i = 0; i < 100; ++i) sum.add(0.0625 * (i % 7 - 3));
  EXPECT_EQ(sum.total(), -0.3125);
  std::vector<double> sums = {0, 0.5, 1.0 / 3};
  host_gpu::reorder(sums, 100);
  EXPECT_EQ(sums[0], 0);
  EXPECT_EQ(sums[1], 0.5);
  EXPECT_NE(sums[2], 1.0 / 3);
}

using Seed = std::optional<std::uint64_t>;

// A convolution forward and backward: its output and both gradients.
std::vector<float> convolution(Precision precision, Seed seed) {
  const AsACard card(seed);
  const Context gpu(1, Device{.cuda = true});
  Parameters parameters;
  Program program(gpu, parameters,
                  {.gradients = true, .input_gradient = true, .precision = precision});
  const Shape shape = {2, 6, 5, 8};
  const TensorId x = program.input("x", shape);
  const TensorId y = conv2d(program, x, "conv", {.out_channels = 8});
  program.set_output(y);
  program.plan();
  parameters.initialise(gpu, 3);
  parameters.upload();
  std::ranges::copy(noise(shape.elements(), 1), program.value(x));
  program.forward();
  std::ranges::copy(noise(program.shape(y).elements(), 2), program.gradient(y));
  program.backward();
  parameters.download_gradients();
  std::vector<float> results(program.value(y), program.value(y) + program.shape(y).elements());
  results.insert(results.end(), program.gradient(x), program.gradient(x) + shape.elements());
  const std::span<const float> dw = parameters.gradients();
  results.insert(results.end(), dw.begin(), dw.end());
  return results;
}

std::vector<float> product(Seed seed) {
  constexpr std::int64_t kSide = 20;
  const AsACard card(seed);
  const Context gpu(1, Device{.cuda = true});
  const std::vector<float> values = noise(kSide * kSide, 1);
  const Memory a = gpu.copy_of(values);
  const Memory c = gpu.allocate(a.bytes());
  const Factor<float> factor{a.as<float>(), kSide, kSide, kSide};
  gemm(gpu, {.a = factor, .b = transposed(factor), .c = {c.as<float>(), kSide, kSide, kSide}});
  std::vector<float> result(values.size());
  c.download(result.data(), c.bytes());
  return result;
}

// Only products in TF32 lose bits, and only with a seed.
TEST(Rounding, IsThatOfThePrecision) {
  const std::vector<float> exact = convolution(Precision::kFp32, std::nullopt);
  EXPECT_LE(off(convolution(Precision::kTf32, std::nullopt), exact), 1e-7);
  for (const std::uint64_t seed : {2U, 3U}) {
    SCOPED_TRACE(seed);
    const double float32 = off(convolution(Precision::kFp32, seed), exact);
    EXPECT_GE(float32, 1e-8);
    EXPECT_LE(float32, 1e-6);
    const double tf32 = off(convolution(Precision::kTf32, seed), exact);
    EXPECT_GE(tf32, 1e-4);
    EXPECT_LE(tf32, 1e-3);
    const double multiplied = off(product(seed), product(std::nullopt));
    EXPECT_GE(multiplied, 1e-8);
    EXPECT_LE(multiplied, 1e-6);
  }
  EXPECT_NE(convolution(Precision::kFp32, 2), convolution(Precision::kFp32, 4));
}

TEST(Rounding, ASmallNetworkIsWithinTheBoundsOfACard) {
  const AsACard card(random_seed());
  const Context gpu(2, Device{.cuda = true});
  for (const Precision precision : {Precision::kFp32, Precision::kTf32}) {
    compare_network_with_cpu({.arch = "resnet20", .precision = precision, .batch = 4}, gpu);
  }
}

}  // namespace
}  // namespace rk
