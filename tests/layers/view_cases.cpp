#include "tests/layers/view_cases.h"

#include "engine/base/half.h"
#include "engine/base/random.h"
#include "engine/device/pinned_buffer.h"
#include "engine/tape/layout.h"
#include "engine/tape/program.h"
#include "kernels/half_element.h"
#include "layers/activation.h"
#include "layers/concat.h"
#include "layers/linear.h"
#include "layers/reshape.h"
#include "layers/slice.h"
#include "tests/support/node_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace rk::testing {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::vector<std::byte> narrowed(const std::vector<float>& values, DType type) {
  return with_type(type, [&]<class T>() {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T value = Element<T>::narrow(values[i]);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return bytes;
  });
}

// Copy between a program's memory and the host, for any type of images.
void write(const Program& program, const Tensor& to, const std::vector<float>& values) {
  const std::vector<std::byte> bytes = narrowed(values, to.dtype);
  if (!program.on_gpu()) {
    std::memcpy(to.data, bytes.data(), bytes.size());
    return;
  }
  const PinnedBuffer host(bytes.size());
  std::ranges::copy(bytes, host.as<std::byte>());
  program.context().upload(to.data, host.as<std::byte>(), bytes.size());
  program.context().synchronize();
}
std::vector<float> read(const Program& program, const Tensor& from) {
  std::vector<std::byte> bytes(from.bytes());
  if (!program.on_gpu()) {
    std::memcpy(bytes.data(), from.data, bytes.size());
  } else {
    const PinnedBuffer host(bytes.size());
    program.context().download(host.as<std::byte>(), from.data, bytes.size());
    program.context().synchronize();
    std::copy_n(host.as<std::byte>(), bytes.size(), bytes.data());
  }
  return widened(bytes, from.dtype);
}

bool lies_in(const Tensor& part, const Tensor& whole) {
  const auto* begin = static_cast<const std::byte*>(whole.data);
  const auto* place = static_cast<const std::byte*>(part.data);
  return place >= begin && place < begin + whole.bytes();
}

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

// The largest error of a number rounded to that type, relative to the number.
double rounding(DType type) {
  if (type == DType::kFloat16) return 0x1p-11;
  return type == DType::kBfloat16 ? 0x1p-8 : 0x1p-24;
}

// Sums of up to a few hundred float32 products in another order. In 16 bits, up to eight tensors on
// the way are rounded: a whole, then its part, and then what reads the part.
void expect_near(const std::vector<float>& got, const Matrix& expected, DType type,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.values.size()) << what;
  double largest = 0;
  for (const double value : expected.values) largest = std::max(largest, std::abs(value));
  const double tolerance = (1e-5 + 8 * rounding(type)) * (1 + largest);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected.values[i], tolerance) << what << " at " << i;
  }
}

// A linear layer, with its definition.
class Linear {
 public:
  Linear(Program& program, TensorId x, const std::string& name, std::int64_t outputs)
      : parameters_(program.parameters()),
        type_(program.dtype(x)),
        y(linear(program, x, name, {.out_features = outputs})),
        weight_(entry(name + ".weight")),
        bias_(entry(name + ".bias")) {}

  Matrix forward(const Matrix& x) const {
    const Matrix w = weight(parameters_.values());
    Matrix result{x.rows, w.rows};
    for (std::int64_t r = 0; r < x.rows; ++r) {
      for (std::int64_t o = 0; o < w.rows; ++o) {
        double sum = static_cast<double>(rounded(parameters_.value(bias_)[o]));
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
    expect_near(gradient(weight_), dw, type_, parameters_.entry(weight_).name);
    expect_near(gradient(bias_), db, type_, parameters_.entry(bias_).name);
    return dx;
  }

 private:
  ParameterId entry(const std::string& name) const {
    const auto& all = parameters_.entries();
    const auto found = std::ranges::find(all, name, &Parameters::Entry::name);
    return static_cast<ParameterId>(found - all.begin());
  }
  Matrix weight(std::span<const float> flat) const {
    const Shape& shape = parameters_.entry(weight_).shape;
    std::vector<float> values(at(shape.elements()));
    parameters_.get(flat, weight_, values.data());
    for (float& value : values) value = rounded(value);
    return matrix(shape[0], shape[1], values);
  }

  // The value that the layer computes with.
  float rounded(float value) const { return widened(narrowed({value}, type_), type_)[0]; }

  Parameters& parameters_;
  DType type_;

 public:
  TensorId y;

 private:
  ParameterId weight_, bias_;
};

struct Range {
  std::int64_t first, count;
};

// Ranges of `all` columns: cut at random places, at times without one of the ranges; or some ranges
// anywhere.
std::vector<Range> ranges(CounterRandom& random, std::int64_t all) {
  std::vector<Range> result;
  if (random.below(3) == 0) {
    for (std::int64_t i = 1 + random.below(4); i > 0; --i) {
      const std::int64_t first = random.below(all);
      result.push_back({first, 1 + random.below(all - first)});
    }
    return result;
  }
  for (std::int64_t first = 0; first < all;) {
    const std::int64_t count = 1 + random.below(all - first);
    result.push_back({first, count});
    first += count;
  }
  if (result.size() > 1 && random.below(2) == 0) {
    result.erase(result.begin() + random.below(std::ssize(result)));
  }
  for (std::int64_t i = std::ssize(result) - 1; i > 0; --i) {
    std::swap(result[at(i)], result[at(random.below(i + 1))]);
  }
  return result;
}

}  // namespace

void check_slices_of_features(const Context& context, Precision precision, std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {} in {}", seed, name_of(precision)));
  CounterRandom random(seed, 3, 0);
  const std::int64_t images = 1 + random.below(4), tokens = 1 + random.below(5);
  const std::int64_t rows = images * tokens, inputs = 1 + random.below(20);
  const std::int64_t all = 1 + random.below(40), outputs = 1 + random.below(12);

  Parameters parameters;
  Program program(context, parameters,
                  {.gradients = true, .input_gradient = true, .precision = precision});
  const DType type = image_type(precision);
  const TensorId x = program.input("x", {rows, inputs}, 0, type);
  const Linear whole(program, x, "whole", all);

  // A branch: a range of the whole, or all of it, at times through a ReLU, then a linear layer.
  struct Branch {
    Range range;
    bool relu;
    Linear linear;
  };
  std::vector<Branch> branches;
  std::vector<Range> taken = ranges(random, all);
  const bool by_image = random.below(2) == 0;
  TensorId tokens_of_images = whole.y;
  if (by_image) {
    tokens_of_images = reshape(program, whole.y, {images, tokens, all}, "by_image");
  }
  if (random.below(4) == 0) taken.push_back({0, 0});  // all of it, as it is
  TensorId sum = -1;
  for (const Range& range : taken) {
    const std::string name = fmt::format("branch{}", branches.size());
    const bool sliced = range.count > 0;
    TensorId y = whole.y;
    if (sliced) {
      // At times a range of a range.
      const std::int64_t wider = random.below(2) == 0 ? random.below(range.first + 1) : 0;
      y = wider == 0 ? slice(program, tokens_of_images, range.first, range.count, name)
                     : slice(program,
                             slice(program, tokens_of_images, wider, all - wider, name + ".wider"),
                             range.first - wider, range.count, name);
      y = reshape(program, y, {rows, range.count}, name + ".rows");
    }
    const bool with_relu = random.below(3) == 0;
    if (with_relu) y = relu(program, y, name + ".relu");
    branches.push_back(
        {sliced ? range : Range{0, all}, with_relu, Linear(program, y, name + ".linear", outputs)});
    const TensorId result = branches.back().linear.y;
    sum = sum < 0 ? result : add(program, sum, result, name + ".sum");
  }
  program.set_output(sum);
  program.plan();
  parameters.initialise(context, seed);
  parameters.upload();

  const auto numbers = [&](std::int64_t count, std::uint64_t stream) {
    return widened(narrowed(noise(count, 2 * seed + stream), type), type);
  };
  const std::vector<float> values = numbers(rows * inputs, 0);
  const std::vector<float> gradients = numbers(rows * outputs, 1);
  const Matrix in = matrix(rows, inputs, values), dy = matrix(rows, outputs, gradients);
  write(program, program.value_of(x), values);
  program.forward();
  const std::vector<float> got = read(program, program.value_of(sum));
  write(program, program.gradient_of(sum), gradients);
  program.backward();
  const std::vector<float> got_dx = read(program, program.gradient_of(x));
  parameters.download_gradients();

  const Matrix h = whole.forward(in);
  Matrix expected{rows, outputs}, dh{rows, all};
  for (const Branch& branch : branches) {
    Matrix part{rows, branch.range.count};
    const auto passes = [&](double value) { return !branch.relu || value > 0; };
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < part.columns; ++c) {
        const double value = h(r, branch.range.first + c);
        part(r, c) = passes(value) ? value : 0;
      }
    }
    const Matrix y = branch.linear.forward(part), d_part = branch.linear.backward(part, dy);
    for (std::size_t i = 0; i < y.values.size(); ++i) expected.values[i] += y.values[i];
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < part.columns; ++c) {
        double& place = dh(r, branch.range.first + c);
        if (passes(h(r, branch.range.first + c))) place += d_part(r, c);
      }
    }
  }
  expect_near(got, expected, type, "output");
  expect_near(got_dx, whole.backward(in, dh), type, "gradient of the input");
}

void check_shuffled_channels(const Context& context, Precision precision, std::int64_t block,
                             std::uint64_t seed) {
  SCOPED_TRACE(
      fmt::format("seed {} in {}, {} channels side by side", seed, name_of(precision), block));
  CounterRandom random(seed, 4, 0);
  const std::int64_t unit = block > 0 ? block : 1;
  const Shape shape = {1 + random.below(3), 1 + random.below(4), 1 + random.below(4),
                       unit * (1 + random.below(block > 0 ? 5 : 40))};
  const std::int64_t channels = shape[3], pixels = shape.elements() / channels;
  // Ranges of whole blocks and, at times, of parts of them.
  const std::int64_t grain = random.below(2) == 0 ? unit : 1;
  std::vector<Range> cut = ranges(random, channels / grain);
  for (Range& range : cut) range = {range.first * grain, range.count * grain};

  Parameters parameters;
  Program program(context, parameters,
                  {.gradients = true, .input_gradient = true, .precision = precision});
  const DType type = program.on_gpu() ? image_type(precision) : DType::kFloat32;
  const TensorId x = program.input("x", shape, block, type);
  const TensorId whole = relu(program, x, "whole");
  std::vector<TensorId> parts;
  std::vector<Range> of_parts;
  for (const Range& range : cut) {
    const std::string name = fmt::format("part{}", parts.size());
    // At times a range of a range.
    const std::int64_t wider = random.below(2) == 0 ? random.below(range.first + 1) : 0;
    const TensorId from =
        wider == 0 ? whole : slice(program, whole, wider, channels - wider, name + ".wider");
    const TensorId part = slice(program, from, range.first - wider, range.count, name);
    for (std::int64_t times = random.below(4) == 0 ? 2 : 1; times > 0; --times) {
      parts.push_back(part);
      of_parts.push_back(range);
    }
  }
  const TensorId joined = concat(program, parts, "joined");
  program.set_output(joined);
  program.plan();
  parameters.initialise(context, 1);

  // Multiples of 1/2, whose sums are exact in every type.
  const auto halves = [&](std::int64_t count, std::uint64_t stream) {
    CounterRandom values(seed, 5, stream);
    std::vector<float> result(at(count));
    for (float& value : result) value = 0.5F * static_cast<float>(values.below(17) - 8);
    return result;
  };
  const auto stored = [&](TensorId id, const std::vector<float>& nhwc) {
    std::vector<float> values(nhwc.size());
    from_nhwc(image_layout(program.shape(id), program.channel_block(id)), nhwc.data(),
              values.data());
    return values;
  };
  const auto nhwc = [&](TensorId id, const Tensor& tensor) {
    std::vector<float> values = read(program, tensor), result(values.size());
    program.copy_out(id, values.data(), result.data());
    return result;
  };
  const std::int64_t out_channels = program.shape(joined)[3];
  const std::vector<float> in = halves(shape.elements(), 0);
  const std::vector<float> dy = halves(pixels * out_channels, 1);
  write(program, program.value_of(x), stored(x, in));
  program.forward();
  const std::vector<float> got = nhwc(joined, program.value_of(joined));
  write(program, program.gradient_of(joined), stored(joined, dy));
  program.backward();

  std::vector<float> expected(dy.size()), expected_dx(in.size(), 0.0F);
  std::int64_t to = 0;
  for (const Range& range : of_parts) {
    for (std::int64_t c = 0; c < range.count; ++c, ++to) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        const std::size_t from = at(p * channels + range.first + c),
                          there = at(p * out_channels + to);
        expected[there] = std::max(in[from], 0.0F);
        if (in[from] > 0) expected_dx[from] += dy[there];
      }
    }
  }
  EXPECT_EQ(got, expected);
  EXPECT_EQ(nhwc(x, program.gradient_of(x)), expected_dx);
}

void check_query_key_value(const Context& context) {
  constexpr std::int64_t kImages = 2, kTokens = 3, kDim = 8;
  Parameters parameters;
  Program program(context, parameters, {.gradients = true, .input_gradient = true});
  const TensorId x = program.input("x", {kImages * kTokens, kDim});
  const TensorId three = linear(program, x, "qkv", {.out_features = 3 * kDim});
  const TensorId by_image = reshape(program, three, {kImages, kTokens, 3 * kDim}, "by_image");
  std::vector<TensorId> parts, rows;
  TensorId sum = -1;
  for (const char* name : {"q", "k", "v"}) {
    parts.push_back(slice(program, by_image, std::ssize(parts) * kDim, kDim, name));
    rows.push_back(
        reshape(program, parts.back(), {kImages * kTokens, kDim}, std::string(name) + ".rows"));
    const TensorId y =
        linear(program, rows.back(), std::string(name) + ".linear", {.out_features = 5});
    sum = sum < 0 ? y : add(program, sum, y, std::string(name) + ".sum");
  }
  program.set_output(sum);
  program.plan();
  const Tensor value = program.value_of(three), gradient = program.gradient_of(three);
  for (const std::vector<TensorId>& views : {parts, rows}) {
    for (const TensorId id : views) {
      for (const Tensor& part : {program.value_of(id), program.gradient_of(id)}) {
        EXPECT_EQ(part.row_stride, 3 * kDim);
      }
      EXPECT_TRUE(lies_in(program.value_of(id), value));
      EXPECT_TRUE(lies_in(program.gradient_of(id), gradient));
    }
  }
  EXPECT_EQ(program.value_of(parts[1]).image_stride, kTokens * 3 * kDim);
  EXPECT_EQ(program.value_of(by_image).data, value.data);
  EXPECT_EQ(program.gradient_of(by_image).data, gradient.data);
}

}  // namespace rk::testing
