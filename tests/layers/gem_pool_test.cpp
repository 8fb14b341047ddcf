// GeM pooling where the powers of its values exceed double's range.
#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "layers/pool.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace rk {
namespace {

// The logarithm of y = (mean x^p)^(1/p), from logarithms, so that no power over- or underflows.
double log_mean_of_powers(const std::vector<double>& x, double p) {
  const double top = *std::ranges::max_element(x);
  double sum = 0;
  for (const double v : x) sum += std::exp(p * (std::log(v) - std::log(top)));
  return std::log(top) + std::log(sum / static_cast<double>(x.size())) / p;
}

TEST(GemPool, HoldsForAnyExponentAndSize) {
  constexpr std::int64_t kChannels = 3, kRows = 20;
  CounterRandom random(random_seed(), 0, 0);
  for (const double p : {0.01, 0.5, 1.0, 2.0, 3.0, 10.0, 60.0, 100.0, 1000.0}) {
    for (const double size : {3e-6, 5e-4, 1.0, 1e6}) {
      SCOPED_TRACE(::testing::Message() << "p " << p << ", numbers of " << size);
      const Context context(1);
      Parameters parameters;
      Program program(context, parameters, {.gradients = true, .input_gradient = true});
      const TensorId x = program.input("x", {1, 4, 5, kChannels});
      GlobalPoolOptions options{.kind = PoolKind::kGem, .gem = {}};
      options.gem.p = p;
      const TensorId y = global_pool(program, x, "pool", options);
      program.set_output(y);
      program.plan();
      std::vector<float> values(static_cast<std::size_t>(kRows * kChannels));
      for (float& v : values) v = static_cast<float>(size * (0.5 + 0.5 * random.uniform()));
      std::ranges::copy(values, program.value(x));
      program.forward();
      const std::vector<float> pooled(program.value(y), program.value(y) + kChannels);
      std::fill_n(program.gradient(y), kChannels, 1.0F);
      program.backward();
      for (std::int64_t c = 0; c < kChannels; ++c) {
        std::vector<double> of_channel;
        for (std::int64_t r = 0; r < kRows; ++r) {
          of_channel.push_back(static_cast<double>(values[at(r * kChannels + c)]));
        }
        const double log_y = log_mean_of_powers(of_channel, p);
        // One rounding to float.
        EXPECT_NEAR(pooled[at(c)] / std::exp(log_y), 1, 1e-6);
        for (std::int64_t r = 0; r < kRows; ++r) {
          const double expected = std::exp((p - 1) * (std::log(of_channel[at(r)]) - log_y)) /
                                  static_cast<double>(kRows);
          // y is rounded to float before it is raised to p - 1; 1e-37: floats end there.
          EXPECT_NEAR(program.gradient(x)[r * kChannels + c], expected,
                      1e-6 * (1 + p) * expected + 1e-37);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rk
