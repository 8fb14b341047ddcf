#include "engine/tape/program.h"

#include "tests/support/stored_images.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

namespace rk {
namespace {

// y = a x1^2 + b x2^2 ..., which needs its inputs again in backward. A few hundred elements per
// tensor, so that wrong sharing of memory shows.
class SquareSum : public Node {
 public:
  SquareSum(const std::string& name, std::vector<float> factors, std::int64_t elements)
      : Node(name), factors_(std::move(factors)), elements_(elements) {}

  std::string_view kind() const override { return "test"; }
  void carve(Carver& saved, Carver& workspace) override {
    saved_ = saved.take<float>(1);
    workspace_ = workspace.take<float>(32);
  }
  void forward() override {
    for (std::int64_t i = 0; i < elements_; ++i) {
      float sum = 0;
      for (std::size_t k = 0; k < factors_.size(); ++k) {
        const float x = memory_.inputs[k].as<float>()[i];
        sum += factors_[k] * x * x;
      }
      memory_.output.as<float>()[i] = sum;
    }
    saved_[0] = factors_[0];
    // No node may rely on the workspace between nodes: leave garbage.
    std::fill_n(workspace_, 32, -1e30F);
  }
  void backward() override {
    EXPECT_EQ(saved_[0], factors_[0]) << "saved memory was reused";
    for (std::size_t k = 0; k < factors_.size(); ++k) {
      auto* dx = memory_.input_gradients[k].as<float>();
      if (dx == nullptr) continue;
      const auto* x = memory_.inputs[k].as<float>();
      const auto* dy = memory_.output_gradient.as<float>();
      for (std::int64_t i = 0; i < elements_; ++i) {
        const float g = 2 * factors_[k] * x[i] * dy[i];
        dx[i] = memory_.uses[k].accumulate ? dx[i] + g : g;
      }
    }
  }

 private:
  std::vector<float> factors_;
  std::int64_t elements_;
  float* saved_ = nullptr;
  float* workspace_ = nullptr;
};

constexpr std::int64_t kElements = 300;

TensorId square_sum(Program& program, const std::string& name, std::vector<float> factors,
                    const std::vector<TensorId>& inputs) {
  std::vector<NodeInput> edges;
  edges.reserve(inputs.size());
  for (TensorId id : inputs) edges.push_back({.tensor = id, .read_in_backward = true});
  return program.append(std::make_unique<SquareSum>(name, std::move(factors), kElements), edges,
                        {.name = name, .shape = Shape{kElements}});
}

struct Result {
  std::vector<float> output, input_gradient;
  Program::Footprint memory;
};

// A chain with two residual branches: x -> a -> b(a, x) -> c -> d(c, b, b).
Result run(bool keep_all) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters,
                  {.gradients = true, .input_gradient = true, .keep_all = keep_all});
  const TensorId x = program.input("x", Shape{kElements});
  const TensorId a = square_sum(program, "a", {0.5F}, {x});
  const TensorId b = square_sum(program, "b", {0.25F, -0.5F}, {a, x});
  const TensorId c = square_sum(program, "c", {0.75F}, {b});
  const TensorId d = square_sum(program, "d", {1.0F, 0.5F, 0.125F}, {c, b, b});
  program.set_output(d);
  program.plan();
  EXPECT_EQ(program.find("c"), c);
  EXPECT_EQ(program.find("nobody"), -1);
  Result result;
  // Twice: a gradient that accumulates where it should overwrite shows in the second step.
  for (int step = 0; step < 2; ++step) {
    for (std::int64_t i = 0; i < kElements; ++i) {
      program.value(x)[i] = 0.5F + 0.001F * static_cast<float>(i);
    }
    program.forward();
    // As a loss does, which reads embeddings while it writes their gradient.
    std::fill_n(program.gradient(d), kElements, 1.0F);
    result.output.assign(program.value(d), program.value(d) + kElements);
    program.backward();
    result.input_gradient.assign(program.gradient(x), program.gradient(x) + kElements);
  }
  result.memory = program.footprint();
  return result;
}

// The same expression and its derivative in double.
void reference(double x, double* y, double* dy) {
  const double a = 0.5 * x * x, da = x;
  const double b = 0.25 * a * a - 0.5 * x * x, db = 0.5 * a * da - x;
  const double c = 0.75 * b * b, dc = 1.5 * b * db;
  *y = c * c + 0.625 * b * b;
  *dy = 2 * c * dc + 1.25 * b * db;
}

TEST(Program, GradientsOfBranchesAddUp) {
  const Result result = run(false);
  for (std::size_t i = 0; i < kElements; ++i) {
    double y = 0, dy = 0;
    reference(0.5F + 0.001F * static_cast<float>(i), &y, &dy);
    // A dozen float32 roundings of values below 1.
    EXPECT_NEAR(result.output[i], y, 1e-6);
    EXPECT_NEAR(result.input_gradient[i], dy, 1e-6);
  }
}

// Sharing memory must not change a bit; keeping everything must cost more.
TEST(Program, SharedMemoryChangesNothing) {
  const Result shared = run(false), kept = run(true);
  EXPECT_EQ(shared.output, kept.output);
  EXPECT_EQ(shared.input_gradient, kept.input_gradient);
  EXPECT_LT(shared.memory.arena_bytes, kept.memory.arena_bytes);
}

TEST(Program, WithoutGradientsValuesLiveShorter) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {});
  TensorId x = program.input("x", Shape{kElements});
  const TensorId first = x;
  for (int i = 0; i < 10; ++i) x = square_sum(program, fmt::format("n{}", i), {0.5F}, {x});
  program.set_output(x);
  program.plan();
  EXPECT_EQ(program.gradient(first), nullptr);
  // Input and output of one node at a time, and the saved memory of one.
  EXPECT_LE(program.footprint().arena_bytes, 3 * ((kElements * sizeof(float) + 63) / 64 * 64) + 64);
}

// An input is filled before the step, whichever node is the first to read it.
TEST(Program, AnInputWaitsForItsReader) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {});
  const TensorId x = program.input("x", Shape{kElements});
  const TensorId late = program.input("late", Shape{kElements});
  const TensorId a = square_sum(program, "a", {1.0F}, {x});
  const TensorId b = square_sum(program, "b", {1.0F}, {a});
  const TensorId y = square_sum(program, "y", {1.0F, 1.0F}, {b, late});
  program.set_output(y);
  program.plan();
  std::fill_n(program.value(x), kElements, 1.0F);
  std::fill_n(program.value(late), kElements, 3.0F);
  program.forward();
  for (std::int64_t i = 0; i < kElements; ++i) EXPECT_EQ(program.value(y)[i], 10.0F) << i;
}

// y = a x1 + b x2 ...; any gradient may take the place of y's.
class ScaledSum : public Node {
 public:
  ScaledSum(const std::string& name, std::vector<float> factors)
      : Node(name), factors_(std::move(factors)) {}
  std::string_view kind() const override { return "test"; }
  void forward() override {}
  void backward() override {
    for (std::int64_t i = 0; i < kElements; ++i) {
      const float dy = memory_.output_gradient.as<float>()[i];
      for (std::size_t k = 0; k < factors_.size(); ++k) {
        float& dx = memory_.input_gradients[k].as<float>()[i];
        dx = factors_[k] * dy + (memory_.uses[k].accumulate ? dx : 0);
      }
    }
  }

 private:
  std::vector<float> factors_;
};

// Only one of two gradients may take the place of the output's: the first to be passed on would
// overwrite the other.
TEST(Program, OneGradientTakesThePlaceOfTheOutputs) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {.gradients = true, .input_gradient = true});
  const auto sum = [&](const std::string& name, std::vector<float> factors,
                       const std::vector<TensorId>& inputs) {
    std::vector<NodeInput> edges;
    for (const TensorId id : inputs) edges.push_back({.tensor = id, .gradient_in_place = true});
    return program.append(std::make_unique<ScaledSum>(name, std::move(factors)), edges,
                          {.name = name, .shape = Shape{kElements}});
  };
  const TensorId x = program.input("x", Shape{kElements});
  const TensorId a = sum("a", {3.0F}, {x}), b = sum("b", {5.0F}, {x});
  const TensorId y = sum("y", {1.0F, 2.0F}, {a, b});
  program.set_output(y);
  program.plan();
  std::fill_n(program.gradient(y), kElements, 1.0F);
  program.backward();
  for (std::int64_t i = 0; i < kElements; ++i) EXPECT_EQ(program.gradient(x)[i], 13.0F) << i;
}

// Reads an image in blocks of so many channels, and writes it in NHWC.
class FromBlocks : public Node {
 public:
  FromBlocks(const std::string& name, const Shape& shape, std::int64_t block)
      : Node(name), shape_(shape), block_(block) {}
  std::string_view kind() const override { return "test"; }
  void choose_layouts(ChannelBlocks& blocks) override { blocks = {{block_}, shape_[3]}; }
  void forward() override {
    const auto* x = memory_.inputs[0].as<float>();
    auto* y = memory_.output.as<float>();
    for_each_stored(shape_, block_, [&](std::size_t from, std::size_t to) { y[to] = x[from]; });
  }
  void backward() override {}

 private:
  Shape shape_;
  std::int64_t block_;
};

// One that reads it in another layout gets it reordered again.
TEST(Program, EveryReaderGetsTheLayoutItWants) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {});
  const Shape shape{1, 3, 5, 20};
  const TensorId x = program.input("x", shape);
  std::vector<TensorId> read;
  for (const std::int64_t block : {4, 10, 4, 20, 5}) {
    const std::string name = fmt::format("in blocks of {}", block);
    parameters.declare(name, Shape{16}, {});
    read.push_back(program.append(std::make_unique<FromBlocks>(name, shape, block), {{.tensor = x}},
                                  {.name = name, .shape = shape}));
  }
  const TensorId y = square_sum(program, "y", {0.25F, 0.25F, 0.25F, 0.125F, 0.125F}, read);
  program.set_output(y);
  program.plan();
  for (std::int64_t i = 0; i < kElements; ++i) program.value(x)[i] = static_cast<float>(i);
  program.forward();
  for (std::int64_t i = 0; i < kElements; ++i) {
    EXPECT_EQ(program.value(y)[i], static_cast<float>(i * i)) << i;
  }
  // The parameters of a node follow those of the nodes before, also where it is reordered for.
  std::vector<std::int64_t> begins;
  for (std::size_t n = 0; n < program.nodes().size(); ++n) {
    begins.push_back(program.parameters_begin(static_cast<int>(n)));
  }
  EXPECT_GT(begins.size(), 5U);
  EXPECT_TRUE(std::ranges::is_sorted(begins)) << fmt::format("{}", fmt::join(begins, " "));
}

TEST(Program, PixelsAreGatheredOfWhatNobodyReads) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {});
  const Shape image{1, 4, 4, 3}, cells{1, 2, 2, 16};
  const TensorId x = program.input("x", image), read = program.input("read", image);
  program.append(std::make_unique<FromBlocks>("reader", image, 3), {{.tensor = read}},
                 {.name = "reader", .shape = image});
  const SpaceToDepth by_two{.side = 2, .padding = {0, 0}, .image = image};
  EXPECT_THROW(program.gather_pixels(read, by_two, cells), std::invalid_argument);
  program.gather_pixels(x, by_two, cells);
  EXPECT_EQ(program.shape(x), cells);
  EXPECT_THROW(program.gather_pixels(x, by_two, cells), std::invalid_argument);
}

TEST(Program, NeedsAnOutput) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {});
  program.input("x", Shape{1});
  EXPECT_THROW(program.plan(), std::invalid_argument);
}

}  // namespace
}  // namespace rk
