// Layers over rows of features against their definitions in double, outputs and all gradients: the
// linear layer and unit length.
#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "layers/l2norm.h"
#include "layers/linear.h"
#include "tests/support/node_harness.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace rk {
namespace {

// A matrix of floats, read as doubles.
struct Matrix {
  const std::vector<float>& values;
  std::int64_t columns;
  double operator()(std::int64_t row, std::int64_t column) const {
    return static_cast<double>(values[at(row * columns + column)]);
  }
};

// One layer of drawn size, threads, inputs and gradients; half of the layers add to what the
// input's gradient holds.
struct Drawn {
  Drawn(CounterRandom& random, std::int64_t rows, std::int64_t columns,
        const NodeHarness::Record& record)
      : adds(random.below(2) == 0),
        harness(1 + static_cast<int>(random.below(3)), {{.shape = {rows, columns}}}, record,
                adds ? EdgeMode::kAccumulate : EdgeMode::kOverwrite),
        seed(static_cast<std::uint64_t>(random.below(std::int64_t{1} << 40))),
        x(noise(rows * columns, seed)),
        dy(noise(harness.output_shape().elements(), seed + 1)) {}

  void run() {
    std::vector<float> before(x.size(), 0.0F);
    if (adds) before = noise(std::ssize(x), seed + 2);
    y = harness.forward({x});
    dx = harness.backward(dy, {before})[0];
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] -= before[i];
  }
  // Fills the parameter of that name, and returns its values.
  std::vector<float> fill(const std::string& name, const Shape& shape) {
    Parameters& parameters = harness.parameters();
    std::vector<float> values = noise(shape.elements(), seed + 3 + name.size());
    parameters.set(parameters.values(), parameters.declare(name, shape, {}), values.data());
    return values;
  }
  std::vector<float> gradient(const std::string& name, const Shape& shape) {
    Parameters& parameters = harness.parameters();
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    parameters.get(parameters.gradients(), parameters.declare(name, shape, {}), values.data());
    return values;
  }

  bool adds;
  NodeHarness harness;
  std::uint64_t seed;
  std::vector<float> x, dy, y, dx;
};

// Of a sum of so many products of numbers in [-1, 1) in float32, in any order, added to another
// such number: sums on the way are below 1.2 sqrt(terms), and each of the additions rounds one of
// them by at most 6e-8 of it, up or down; together they scatter by less than 4.2e-8 terms, of which
// this is almost four times.
double rounding(std::int64_t terms) { return 1.6e-7 * static_cast<double>(terms) + 3e-7; }

TEST(Linear, IsTheProductWithItsWeights) {
  CounterRandom random(random_seed(), 0, 0);
  for (int drawn = 0; drawn < 150; ++drawn) {
    const std::int64_t rows = 1 + random.below(70), in = 1 + random.below(150),
                       out = 1 + random.below(100);
    const bool bias = random.below(2) == 0;
    SCOPED_TRACE(testing::Message() << "case " << drawn << ": " << rows << " rows of " << in
                                    << " to " << out << (bias ? ", bias" : ""));
    Drawn layer(random, rows, in, [&](Program& program, const std::vector<TensorId>& inputs) {
      return linear(program, inputs[0], "fc", {.out_features = out, .bias = bias});
    });
    const std::vector<float> weights = layer.fill("fc.weight", {out, in});
    std::vector<float> biases(static_cast<std::size_t>(out), 0.0F);
    if (bias) biases = layer.fill("fc.bias", {out});
    layer.run();
    const Matrix x{layer.x, in}, y{layer.y, out}, w{weights, in}, dy{layer.dy, out},
        dx{layer.dx, in};
    for (std::int64_t n = 0; n < rows; ++n) {
      for (std::int64_t m = 0; m < out; ++m) {
        double sum = biases[at(m)];
        for (std::int64_t k = 0; k < in; ++k) sum += x(n, k) * w(m, k);
        ASSERT_NEAR(y(n, m), sum, rounding(in)) << "row " << n << ", output " << m;
      }
      for (std::int64_t k = 0; k < in; ++k) {
        double sum = 0;
        for (std::int64_t m = 0; m < out; ++m) sum += dy(n, m) * w(m, k);
        ASSERT_NEAR(dx(n, k), sum, rounding(out)) << "row " << n << ", input " << k;
      }
    }
    const std::vector<float> dw_values = layer.gradient("fc.weight", {out, in});
    const Matrix dw{dw_values, in};
    for (std::int64_t m = 0; m < out; ++m) {
      double of_bias = 0;
      for (std::int64_t n = 0; n < rows; ++n) of_bias += dy(n, m);
      if (bias) {
        ASSERT_NEAR(layer.gradient("fc.bias", {out})[at(m)], of_bias, rounding(rows));
      }
      for (std::int64_t k = 0; k < in; ++k) {
        double sum = 0;
        for (std::int64_t n = 0; n < rows; ++n) sum += dy(n, m) * x(n, k);
        ASSERT_NEAR(dw(m, k), sum, rounding(rows)) << "output " << m << ", input " << k;
      }
    }
  }
}

// y = x / r with r = max(|x|, epsilon); the gradient is that of a constant r where epsilon counts.
TEST(L2Norm, DividesRowsByTheirLength) {
  CounterRandom random(random_seed(), 0, 0);
  for (int drawn = 0; drawn < 300; ++drawn) {
    const std::int64_t rows = 1 + random.below(40), dim = 1 + random.below(200);
    const bool counts = random.below(4) == 0;
    // So large that it counts for some of the rows: their squares have the mean 1 / 3.
    const double epsilon = counts ? std::sqrt(static_cast<double>(dim) / 3) : 1e-12;
    SCOPED_TRACE(testing::Message() << "case " << drawn << ": " << rows << " rows of " << dim
                                    << ", epsilon " << epsilon);
    Drawn layer(random, rows, dim, [&](Program& program, const std::vector<TensorId>& inputs) {
      return l2norm(program, inputs[0], "unit", epsilon);
    });
    if (!counts && random.below(3) == 0) std::fill_n(layer.x.begin(), dim, 0.0F);
    layer.run();
    const Matrix x{layer.x, dim}, y{layer.y, dim}, dy{layer.dy, dim}, dx{layer.dx, dim};
    for (std::int64_t n = 0; n < rows; ++n) {
      double square = 0, along = 0;
      for (std::int64_t d = 0; d < dim; ++d) {
        square += x(n, d) * x(n, d);
        along += x(n, d) * dy(n, d);
      }
      const double length = std::sqrt(square), r = std::max(length, epsilon);
      if (std::abs(length - epsilon) < 1e-9 * epsilon) continue;  // a kink
      for (std::int64_t d = 0; d < dim; ++d) {
        ASSERT_NEAR(y(n, d), x(n, d) / r, 1e-7) << "row " << n;
        const double radial = length > epsilon ? x(n, d) * along / (r * r) : 0;
        const double gradient = (dy(n, d) - radial) / r;
        // Two roundings, of numbers as large as 1 / r or what is added to.
        ASSERT_NEAR(dx(n, d), gradient, 3e-7 * (1 + std::abs(gradient) + 1 / r))
            << "row " << n << " at " << d;
      }
    }
  }
}

}  // namespace
}  // namespace rk
