#include "tests/layers/program_cases.h"

#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "engine/tape/program.h"
#include "layers/concat.h"
#include "layers/elementwise.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "tests/support/node_harness.h"
#include "tests/support/parameter_id.h"
#include "tests/support/program_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace rk {
namespace {

// Rows by columns, in double.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values = std::vector<double>(at(rows * columns), 0.0);
  double& operator()(std::int64_t r, std::int64_t c) { return values[at(r * columns + c)]; }
  double operator()(std::int64_t r, std::int64_t c) const { return values[at(r * columns + c)]; }
};

Matrix matrix(std::int64_t rows, std::int64_t columns, const std::vector<float>& values) {
  Matrix m{rows, columns};
  std::ranges::copy(values, m.values.begin());
  return m;
}

// Sums of up to a few hundred float32 products in another order.
void expect_near(const std::vector<float>& got, const Matrix& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.values.size()) << what;
  double largest = 0;
  for (const double value : expected.values) largest = std::max(largest, std::abs(value));
  const double tolerance = 1e-5 * (1 + largest);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected.values[i], tolerance) << what << " at " << i;
  }
}

// A linear layer, with its definition.
class Linear {
 public:
  Linear(Program& program, TensorId x, const std::string& name, std::int64_t outputs)
      : parameters_(program.parameters()),
        y(linear(program, x, name, {.out_features = outputs})),
        weight_(id_of(parameters_, name + ".weight")),
        bias_(id_of(parameters_, name + ".bias")) {}

  Matrix forward(const Matrix& x) const {
    const Matrix w = weight(parameters_.values());
    Matrix result{x.rows, w.rows};
    for (std::int64_t r = 0; r < x.rows; ++r) {
      for (std::int64_t o = 0; o < w.rows; ++o) {
        double sum = static_cast<double>(parameters_.value(bias_)[o]);
        for (std::int64_t i = 0; i < w.columns; ++i) sum += x(r, i) * w(o, i);
        result(r, o) = sum;
      }
    }
    return result;
  }
  // Also compares the parameters' gradients.
  Matrix backward(const Matrix& x, const Matrix& dy) const {
    const Matrix w = weight(parameters_.values());
    Matrix dx{x.rows, x.columns}, dw{w.rows, w.columns}, db{1, w.rows};
    for (std::int64_t r = 0; r < x.rows; ++r) {
      for (std::int64_t o = 0; o < w.rows; ++o) {
        db(0, o) += dy(r, o);
        for (std::int64_t i = 0; i < w.columns; ++i) {
          dw(o, i) += dy(r, o) * x(r, i);
          dx(r, i) += dy(r, o) * w(o, i);
        }
      }
    }
    const auto gradient = [&](ParameterId id) {
      std::vector<float> values(at(parameters_.entry(id).elements()));
      parameters_.get(parameters_.gradients(), id, values.data());
      return values;
    };
    expect_near(gradient(weight_), dw, parameters_.entry(weight_).name);
    expect_near(gradient(bias_), db, parameters_.entry(bias_).name);
    return dx;
  }

 private:
  Matrix weight(std::span<const float> flat) const {
    const Shape& shape = parameters_.entry(weight_).shape;
    std::vector<float> values(at(shape.elements()));
    parameters_.get(flat, weight_, values.data());
    return matrix(shape[0], shape[1], values);
  }

  Parameters& parameters_;

 public:
  TensorId y;

 private:
  ParameterId weight_, bias_;
};

// Multiples of 1/2, whose sums are exact in every type.
std::vector<float> halves(std::int64_t count, std::uint64_t seed, std::uint64_t stream) {
  CounterRandom random(seed, 5, stream);
  std::vector<float> values(at(count));
  for (float& value : values) value = 0.5F * static_cast<float>(random.below(17) - 8);
  return values;
}

}  // namespace

void check_linear_layers(const Context& context, std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  CounterRandom random(seed, 3, 0);
  const std::int64_t rows = 1 + random.below(20), inputs = 1 + random.below(20);
  const std::int64_t all = 1 + random.below(40), outputs = 1 + random.below(12);

  Parameters parameters;
  Program program(context, parameters, {.gradients = true, .input_gradient = true});
  const TensorId x = program.input("x", {rows, inputs});
  const Linear whole(program, x, "whole", all);
  struct Branch {
    bool relu;
    Linear linear;
  };
  std::vector<Branch> branches;
  TensorId sum = -1;
  for (std::int64_t count = 1 + random.below(4); count > 0; --count) {
    const std::string name = fmt::format("branch{}", branches.size());
    const bool with_relu = random.below(3) == 0;
    const TensorId y = with_relu ? relu(program, whole.y, name + ".relu") : whole.y;
    branches.push_back({with_relu, Linear(program, y, name + ".linear", outputs)});
    const TensorId result = branches.back().linear.y;
    sum = sum < 0 ? result : add(program, sum, result, name + ".sum");
  }
  program.set_output(sum);
  program.plan();
  parameters.initialise(context, seed);
  parameters.upload();

  const std::vector<float> values = noise(rows * inputs, 2 * seed);
  const std::vector<float> gradients = noise(rows * outputs, 2 * seed + 1);
  const Matrix in = matrix(rows, inputs, values), dy = matrix(rows, outputs, gradients);
  write(program, x, program.value_of(x), values);
  program.forward();
  const std::vector<float> got = read(program, sum, program.value_of(sum));
  write(program, sum, program.gradient_of(sum), gradients);
  program.backward();
  const std::vector<float> got_dx = read(program, x, program.gradient_of(x));
  parameters.download_gradients();

  const Matrix h = whole.forward(in);
  Matrix expected{rows, outputs}, dh{rows, all};
  for (const Branch& branch : branches) {
    Matrix part = h;
    const auto passes = [&](double value) { return !branch.relu || value > 0; };
    for (double& value : part.values) value = passes(value) ? value : 0;
    const Matrix y = branch.linear.forward(part), d_part = branch.linear.backward(part, dy);
    for (std::size_t i = 0; i < y.values.size(); ++i) expected.values[i] += y.values[i];
    for (std::size_t i = 0; i < h.values.size(); ++i) {
      if (passes(h.values[i])) dh.values[i] += d_part.values[i];
    }
  }
  expect_near(got, expected, "output");
  expect_near(got_dx, whole.backward(in, dh), "gradient of the input");
}

void check_joined_channels(const Context& context, Precision precision, std::int64_t block,
                           std::uint64_t seed) {
  SCOPED_TRACE(
      fmt::format("seed {} in {}, {} channels side by side", seed, name_of(precision), block));
  CounterRandom random(seed, 4, 0);
  const std::int64_t batch = 1 + random.below(3), height = 1 + random.below(4),
                     width = 1 + random.below(4), pixels = batch * height * width;
  // At times not all channels divide into blocks, or into what a GPU's thread moves at once.
  const std::int64_t unit = block > 0 ? block : 8, grain = random.below(2) == 0 ? unit : 1;

  Parameters parameters;
  Program program(context, parameters,
                  {.gradients = true, .input_gradient = true, .precision = precision});
  const DType type = program.on_gpu() ? image_type(precision) : DType::kFloat32;
  struct Part {
    TensorId x, y;
    bool relu;
    std::int64_t channels;
    std::vector<float> in, expected_dx;
  };
  std::vector<Part> parts;
  std::vector<std::size_t> order;  // of the parts in the result
  std::vector<TensorId> inputs;
  std::int64_t all = 0;
  for (std::int64_t count = 1 + random.below(5); count > 0; --count) {
    const std::string name = fmt::format("part{}", parts.size());
    const std::int64_t channels = grain * (1 + random.below(block > 0 || grain > 1 ? 5 : 40));
    const Shape shape = {batch, height, width, channels};
    const TensorId x = program.input(name + ".x", shape, channels % unit == 0 ? block : 0, type);
    const std::int64_t layer = random.below(3);
    constexpr PoolOptions kPixels{{1, 1}, {1, 1}, {0, 0}};
    const TensorId y = layer == 0   ? relu(program, x, name)
                       : layer == 1 ? max_pool(program, x, name, kPixels)
                                    : average_pool(program, x, name, kPixels);
    parts.push_back({x, y, layer == 0, channels, halves(shape.elements(), seed, parts.size()),
                     std::vector<float>(at(shape.elements()), 0.0F)});
    for (std::int64_t times = random.below(4) == 0 ? 2 : 1; times > 0; --times) {
      order.push_back(parts.size() - 1);
      inputs.push_back(y);
      all += channels;
    }
  }
  const TensorId joined = concat(program, inputs, "joined");
  program.set_output(joined);
  program.plan();
  parameters.initialise(context, 1);

  for (const Part& part : parts) write(program, part.x, program.value_of(part.x), part.in);
  program.forward();
  const std::vector<float> got = read(program, joined, program.value_of(joined));
  const std::vector<float> dy = halves(pixels * all, seed, parts.size());
  write(program, joined, program.gradient_of(joined), dy);
  program.backward();

  std::vector<float> expected(dy.size());
  std::int64_t first = 0;
  for (const std::size_t i : order) {
    Part& part = parts[i];
    for (std::int64_t c = 0; c < part.channels; ++c) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        const std::size_t from = at(p * part.channels + c), to = at(p * all + first + c);
        const bool passes = !part.relu || part.in[from] > 0;
        expected[to] = passes ? part.in[from] : 0.0F;
        if (passes) part.expected_dx[from] += dy[to];
      }
    }
    first += part.channels;
  }
  EXPECT_EQ(got, expected);
  for (const Part& part : parts) {
    EXPECT_EQ(read(program, part.x, program.gradient_of(part.x)), part.expected_dx)
        << program.producer(part.y)->name();
  }
}

}  // namespace rk
