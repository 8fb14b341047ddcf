// Every layer keeps the engine's contract: it writes all of its output and nothing beside it, reads
// in backward only what it claimed, adds to a gradient where it is told to, may work in place where
// it says so, gives the same results for any number of threads, and its gradients are those of its
// forward.
#include "tests/layers/layer_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rk {
namespace {

class LayerConformance : public ::testing::TestWithParam<LayerCase> {};

std::unique_ptr<NodeHarness> make(const LayerCase& c, int threads = 1,
                                  EdgeMode mode = EdgeMode::kOverwrite) {
  auto harness = std::make_unique<NodeHarness>(threads, c.sources, c.record, mode);
  randomise(harness->parameters());
  return harness;
}

std::vector<std::vector<float>> inputs_of(const LayerCase& c, std::uint64_t seed) {
  if (c.inputs) return c.inputs(seed);
  std::vector<std::vector<float>> inputs;
  for (std::size_t i = 0; i < c.sources.size(); ++i) {
    inputs.push_back(noise(c.sources[i].shape.elements(), 10 * seed + i));
  }
  return inputs;
}

// Inputs far enough from kinks for differences: of 200 seeds, the one whose least |value| in front
// of the ReLU is largest.
std::vector<std::vector<float>> inputs_away_from_kinks(const LayerCase& c) {
  if (!c.smooth) return inputs_of(c, 1);
  NodeHarness smooth(1, c.sources, c.smooth);
  randomise(smooth.parameters());
  double best = -1;
  std::vector<std::vector<float>> chosen;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::vector<std::vector<float>> inputs = inputs_of(c, seed);
    double nearest = 1e9;
    for (float y : smooth.forward(inputs))
      nearest = std::min(nearest, std::abs(static_cast<double>(y)));
    if (nearest > best) {
      best = nearest;
      chosen = std::move(inputs);
    }
  }
  return chosen;
}

std::vector<float> output_gradient(const NodeHarness& harness) {
  return noise(harness.output_shape().elements(), 77);
}

double largest(const std::vector<float>& values) {
  double most = 0;
  for (float v : values) most = std::max(most, std::abs(static_cast<double>(v)));
  return most;
}

std::vector<float> parameter_gradients(Parameters& parameters) {
  std::vector<float> all;
  for (std::size_t id = 0; id < parameters.entries().size(); ++id) {
    std::vector<float> values(static_cast<std::size_t>(parameters.entries()[id].elements()));
    parameters.get(parameters.gradients(), static_cast<ParameterId>(id), values.data());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_P(LayerConformance, WritesEverythingAndAgainTheSame) {
  const LayerCase& c = GetParam();
  const auto harness = make(c);
  const auto inputs = inputs_of(c, 3);
  const std::vector<float> y = harness->forward(inputs);
  for (float v : y) ASSERT_TRUE(std::isfinite(v)) << "an output was not written";
  const auto dx = harness->backward(output_gradient(*harness));
  for (const std::vector<float>& gradient : dx) {
    for (float v : gradient) ASSERT_TRUE(std::isfinite(v)) << "a gradient was not written";
  }
  const std::vector<float> dw = parameter_gradients(harness->parameters());
  EXPECT_EQ(harness->forward(inputs), y);
  EXPECT_EQ(harness->backward(output_gradient(*harness)), dx);
  EXPECT_EQ(parameter_gradients(harness->parameters()), dw);
}

TEST_P(LayerConformance, AddsToAGradientWhereToldTo) {
  const LayerCase& c = GetParam();
  const auto overwriting = make(c), adding = make(c, 1, EdgeMode::kAccumulate);
  const auto inputs = inputs_of(c, 4);
  overwriting->forward(inputs);
  adding->forward(inputs);
  std::vector<std::vector<float>> before;
  for (std::size_t i = 0; i < c.sources.size(); ++i) {
    before.push_back(noise(c.sources[i].shape.elements(), 300 + i));
  }
  const auto alone = overwriting->backward(output_gradient(*overwriting));
  const auto added = adding->backward(output_gradient(*adding), before);
  EXPECT_EQ(parameter_gradients(adding->parameters()),
            parameter_gradients(overwriting->parameters()));
  for (std::size_t i = 0; i < alone.size(); ++i) {
    for (std::size_t e = 0; e < alone[i].size(); ++e) {
      // One rounding of a sum. Another primitive may add up a convolution's products in another
      // order: a few roundings of their total.
      const double tolerance =
          1e-6 * (1 + std::abs(static_cast<double>(before[i][e])) + largest(alone[i]));
      ASSERT_NEAR(added[i][e], alone[i][e] + before[i][e], tolerance)
          << "input " << i << " at " << e;
    }
  }
}

TEST_P(LayerConformance, WorksInPlaceWhereItSaysSo) {
  const LayerCase& c = GetParam();
  const auto apart = make(c), in_place = make(c, 1, EdgeMode::kInPlace);
  if (!apart->has_in_place_input()) GTEST_SKIP() << "the layer does not allow it";
  const auto inputs = inputs_of(c, 5);
  apart->forward(inputs);
  in_place->forward(inputs);
  EXPECT_EQ(in_place->backward(output_gradient(*apart)), apart->backward(output_gradient(*apart)));
  EXPECT_EQ(parameter_gradients(in_place->parameters()), parameter_gradients(apart->parameters()));
}

// A convolution may split its sums by threads; everything else adds up in a fixed order.
TEST_P(LayerConformance, AgreesForAnyNumberOfThreads) {
  const LayerCase& c = GetParam();
  const auto inputs = inputs_of(c, 6);
  const auto one = make(c, 1);
  const std::vector<float> y = one->forward(inputs);
  const auto dx = one->backward(output_gradient(*one));
  const std::vector<float> dw = parameter_gradients(one->parameters());
  for (int threads : {2, 3}) {
    const auto more = make(c, threads);
    const auto near = [&](const std::vector<float>& a, const std::vector<float>& b) {
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6 * (1 + largest(b)));
    };
    near(more->forward(inputs), y);
    const auto gradients = more->backward(output_gradient(*more));
    for (std::size_t i = 0; i < dx.size(); ++i) near(gradients[i], dx[i]);
    near(parameter_gradients(more->parameters()), dw);
  }
}

// (L(v + h) - L(v - h)) / 2h for some elements of every input and parameter, L = sum of dy * y.
// Error: h^2 / 6 of the third derivative (h = 0.01, values of size 1), or, where the layer is
// linear (h = 0.5), the rounding of L alone, some 1e-7 sqrt(outputs) / h.
TEST_P(LayerConformance, GradientsAreThoseOfItsForward) {
  const LayerCase& c = GetParam();
  const auto harness = make(c);
  auto inputs = inputs_away_from_kinks(c);
  const std::vector<float> dy = output_gradient(*harness);
  harness->forward(inputs);
  const auto dx = harness->backward(dy);
  Parameters& parameters = harness->parameters();

  constexpr std::size_t kElements = 24;  // of each tensor
  const auto check = [&](const std::string& what, std::vector<float>& values,
                         const std::vector<float>& gradient, const std::function<void()>& changed) {
    const double share = c.step < 0.1 ? 2e-3 : 2e-4;
    const double tolerance = share * (0.1 + largest(gradient));
    const std::size_t count = values.size();
    for (std::size_t k = 0; k < std::min(kElements, count); ++k) {
      const std::size_t e = count <= kElements ? k : (k * 2654435761U + 17) % count;
      const float before = values[e];
      const auto loss = [&](double at) {
        values[e] = static_cast<float>(before + at);
        changed();
        return weigh(harness->forward(inputs), dy);
      };
      // As rounded to float32, the step is not exactly what was asked for.
      const double up = static_cast<double>(static_cast<float>(before + c.step)) - before;
      const double down = before - static_cast<double>(static_cast<float>(before - c.step));
      const double difference = (loss(c.step) - loss(-c.step)) / (up + down);
      values[e] = before;
      changed();
      EXPECT_NEAR(gradient[e], difference, tolerance) << what << " element " << e;
    }
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!c.sources[i].wants_gradient) continue;
    check("input " + std::to_string(i), inputs[i], dx[i], [] {});
  }
  for (std::size_t id = 0; id < parameters.entries().size(); ++id) {
    const auto parameter = static_cast<ParameterId>(id);
    std::vector<float> values(static_cast<std::size_t>(parameters.entry(parameter).elements()));
    std::vector<float> gradient(values.size());
    parameters.get(parameters.values(), parameter, values.data());
    parameters.get(parameters.gradients(), parameter, gradient.data());
    check(parameters.entry(parameter).name, values, gradient,
          [&] { parameters.set(parameters.values(), parameter, values.data()); });
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, LayerConformance, ::testing::ValuesIn(layer_cases()),
                         [](const auto& layer) { return layer.param.name; });

LayerCase with_whole_pixels(LayerCase c) {
  for (NodeHarness::Source& source : c.sources) source.block = 0;
  return c;
}

// The cases with an input in blocks of channels whose layer reads it as whole pixels, too.
std::vector<LayerCase> cases_in_blocks() {
  std::vector<LayerCase> cases;
  for (const LayerCase& c : layer_cases()) {
    const bool in_blocks =
        std::ranges::any_of(c.sources, [](const auto& source) { return source.block > 0; });
    if (in_blocks && NodeHarness::reads(1, with_whole_pixels(c).sources, c.record)) {
      cases.push_back(c);
    }
  }
  return cases;
}

class LayersInBlocks : public ::testing::TestWithParam<LayerCase> {};

// A layer that takes one layout for another is wrong forward and backward alike, so that its
// gradients are those of its forward. Sums in another order: a few roundings of their total.
TEST_P(LayersInBlocks, ComputeWhatTheyDoOnWholePixels) {
  const LayerCase& c = GetParam();
  const auto blocks = make(c), pixels = make(with_whole_pixels(c));
  const auto inputs = inputs_away_from_kinks(c);
  const auto near = [](const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5 * (1 + largest(b)));
  };
  near(blocks->forward(inputs), pixels->forward(inputs));
  const auto dx = blocks->backward(output_gradient(*blocks));
  const auto expected = pixels->backward(output_gradient(*pixels));
  ASSERT_EQ(dx.size(), expected.size());
  for (std::size_t i = 0; i < dx.size(); ++i) near(dx[i], expected[i]);
  near(parameter_gradients(blocks->parameters()), parameter_gradients(pixels->parameters()));
}

INSTANTIATE_TEST_SUITE_P(Layers, LayersInBlocks, ::testing::ValuesIn(cases_in_blocks()),
                         [](const auto& layer) { return layer.param.name; });

}  // namespace
}  // namespace rk
