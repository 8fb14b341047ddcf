#include "engine/tape/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <vector>

namespace rk {
namespace {

std::vector<float> counted(std::int64_t elements) {
  std::vector<float> values(static_cast<std::size_t>(elements));
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

TEST(Parameters, CanonicalOrderComesBackFromEveryStoredOrder) {
  Parameters parameters;
  const ParameterId plain = parameters.declare("plain", Shape{5, 3, 1, 7}, {});
  const ParameterId blocked = parameters.declare("blocked", Shape{16, 32, 3, 3}, {});
  const ParameterId stem = parameters.declare("stem", Shape{32, 3, 7, 7}, {});
  parameters.store_as(blocked, {WeightOrder::Kind::kBlocked, 16});
  parameters.store_as(stem, {WeightOrder::Kind::kStem, 16});
  parameters.allocate(Context(1));
  EXPECT_NO_THROW(parameters.store_as(stem, {WeightOrder::Kind::kStem, 16}));
  EXPECT_THROW(parameters.store_as(stem, {WeightOrder::Kind::kStem, 8}), std::invalid_argument);
  for (ParameterId id : {plain, blocked, stem}) {
    const std::vector<float> values = counted(parameters.entry(id).elements());
    std::vector<float> back(values.size());
    parameters.set(parameters.values(), id, values.data());
    parameters.get(parameters.values(), id, back.data());
    EXPECT_EQ(back, values) << parameters.entry(id).name;
    // Each stored element is one of the canonical ones: nothing twice, nothing lost.
    const std::set<float> stored(parameters.value(id), parameters.value(id) + values.size());
    EXPECT_EQ(stored, std::set<float>(values.begin(), values.end()));
  }
  // OIhw16i16o: element (o, i, y, x) = (3, 17, 1, 2) of 32 inputs.
  const std::int64_t canonical = (3 * 32 + 17) * 9 + 5;
  const std::int64_t stored = (((0 * 2 + 1) * 9 + 5) * 16 + 1) * 16 + 3;
  EXPECT_EQ(parameters.value(blocked)[stored], static_cast<float>(canonical + 1));
  // Ohwi16o: (o, i, y, x) = (18, 2, 6, 1) of 3 inputs.
  const std::int64_t canonical_stem = (18 * 3 + 2) * 49 + 43;
  const std::int64_t stored_stem = ((1 * 49 + 43) * 3 + 2) * 16 + 2;
  EXPECT_EQ(parameters.value(stem)[stored_stem], static_cast<float>(canonical_stem + 1));
}

TEST(Parameters, FlatBuffersShareOffsetsAndPaddingStaysZero) {
  Parameters parameters;
  const ParameterId a = parameters.declare("a", Shape{5}, {Initial::Kind::kConstant, 2.0});
  const ParameterId b = parameters.declare("b", Shape{3, 7}, {Initial::Kind::kUniform, 1.0});
  parameters.initialise(Context(1), 1);
  EXPECT_EQ(parameters.value(b) - parameters.values().data(),
            parameters.gradient(b) - parameters.gradients().data());
  EXPECT_EQ(parameters.parameter_count(), 26);
  std::vector<bool> used(parameters.flat_elements(), false);
  for (ParameterId id : {a, b}) {
    const Parameters::Entry& entry = parameters.entry(id);
    for (std::int64_t i = 0; i < entry.elements(); ++i) {
      used[static_cast<std::size_t>(entry.offset + i)] = true;
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) {
      EXPECT_EQ(parameters.values()[i], 0.0F);
    }
    EXPECT_EQ(parameters.gradients()[i], 0.0F);
  }
}

TEST(Parameters, AnInitialValueDependsOnSeedAndNameAlone) {
  const auto draw = [](std::uint64_t seed, bool another_before) {
    Parameters parameters;
    if (another_before) parameters.declare("other", Shape{4}, {Initial::Kind::kNormal, 1.0});
    const ParameterId id = parameters.declare("w", Shape{9}, {Initial::Kind::kNormal, 1.0});
    parameters.initialise(Context(1), seed);
    return std::vector<float>(parameters.value(id), parameters.value(id) + 9);
  };
  EXPECT_EQ(draw(1, false), draw(1, true));
  EXPECT_NE(draw(1, false), draw(2, false));
}

TEST(Parameters, InitialDistributions) {
  Parameters parameters;
  const ParameterId normal =
      parameters.declare("normal", Shape{100, 100}, {Initial::Kind::kNormal, 0.25});
  const ParameterId uniform =
      parameters.declare("uniform", Shape{100, 100}, {Initial::Kind::kUniform, 0.25});
  parameters.initialise(Context(1), 3);
  double squares = 0, largest = 0, smallest = 0, normal_sum = 0, uniform_sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const auto n = static_cast<double>(parameters.value(normal)[i]);
    const auto u = static_cast<double>(parameters.value(uniform)[i]);
    squares += n * n;
    normal_sum += n;
    uniform_sum += u;
    largest = std::max(largest, u);
    smallest = std::min(smallest, u);
  }
  EXPECT_NEAR(std::sqrt(squares / 10000), 0.25, 0.25 * 5 / std::sqrt(20000.0));  // 5 deviations
  EXPECT_LE(largest, 0.25);
  EXPECT_GE(largest, 0.249);
  EXPECT_GE(smallest, -0.25);
  EXPECT_LE(smallest, -0.249);
  // Means of both signs: five standard errors.
  EXPECT_NEAR(normal_sum / 10000, 0, 5 * 0.25 / 100);
  EXPECT_NEAR(uniform_sum / 10000, 0, 5 * 0.25 / std::sqrt(3.0) / 100);
  // Some of ten thousand floats are equal by chance, but no stretch of them comes again.
  for (const ParameterId id : {normal, uniform}) {
    const std::set<float> different(parameters.value(id), parameters.value(id) + 10000);
    EXPECT_GT(different.size(), 9900U) << parameters.entry(id).name;
  }
}

TEST(Parameters, InitialisingAgainBeginsAnew) {
  Parameters parameters;
  const ParameterId w = parameters.declare("w", Shape{9}, {Initial::Kind::kNormal, 1.0});
  const BufferId mean = parameters.declare_buffer("mean", 3, 0.0F);
  const BufferId variance = parameters.declare_buffer("variance", 3, 1.0F);
  const BufferId counter = parameters.declare_counter("counter");
  parameters.initialise(Context(1), 5);
  const std::vector<float> first(parameters.value(w), parameters.value(w) + 9);
  for (const std::span<float> values : {parameters.values(), parameters.gradients()}) {
    std::ranges::fill(values, 7.0F);
  }
  for (const BufferId id : {mean, variance}) std::fill_n(parameters.buffer(id), 3, 7.0F);
  parameters.counter(counter) = 7;
  parameters.initialise(Context(1), 5);
  EXPECT_EQ(std::vector<float>(parameters.value(w), parameters.value(w) + 9), first);
  EXPECT_EQ(parameters.gradient(w)[8], 0.0F);
  EXPECT_EQ(parameters.buffer(mean)[2], 0.0F);
  EXPECT_EQ(parameters.buffer(variance)[2], 1.0F);
  EXPECT_EQ(parameters.counter(counter), 0);
}

// Rows of a wide matrix, columns of a tall one: orthonormal to float32's rounding of each element.
TEST(Parameters, OrthogonalMatricesAre) {
  for (const Shape& shape : {Shape{16, 40}, Shape{40, 16}, Shape{24, 24}, Shape{1, 5}}) {
    Parameters parameters;
    const ParameterId id = parameters.declare("w", shape, {Initial::Kind::kOrthogonal, 1.0});
    parameters.initialise(Context(1), 11);
    const float* w = parameters.value(id);
    const bool wide = shape[0] <= shape[1];
    const std::int64_t count = wide ? shape[0] : shape[1], length = wide ? shape[1] : shape[0];
    const auto at = [&](std::int64_t vector, std::int64_t k) {
      return static_cast<double>(wide ? w[vector * shape[1] + k] : w[k * shape[1] + vector]);
    };
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        double dot = 0;
        for (std::int64_t k = 0; k < length; ++k) dot += at(i, k) * at(j, k);
        EXPECT_NEAR(dot, i == j ? 1.0 : 0.0, 1e-6) << shape.text();
      }
    }
  }
}

TEST(Parameters, WhatBeginsLikeAFrozenNameIsFrozen) {
  Parameters parameters;
  EXPECT_FALSE(parameters.freezes_any());
  parameters.freeze({"conv1.", "layer1"});
  EXPECT_TRUE(parameters.freezes_any());
  for (const char* name : {"conv1.weight", "conv10.weight", "layer1.0.weight", "a.layer1"}) {
    parameters.declare(name, Shape{3}, {});
  }
  std::vector<bool> frozen;
  for (const Parameters::Entry& entry : parameters.entries()) frozen.push_back(entry.frozen);
  EXPECT_EQ(frozen, (std::vector<bool>{true, false, true, false}));
  EXPECT_THROW(parameters.freeze({}), std::invalid_argument);
}

TEST(Parameters, DeclaringAgainGivesTheSameAndAnotherShapeIsRefused) {
  Parameters parameters;
  const ParameterId id = parameters.declare("w", Shape{2, 3}, {});
  const BufferId mean = parameters.declare_buffer("bn.running_mean", 4, 0.5F);
  const BufferId counter = parameters.declare_counter("bn.num_batches_tracked");
  parameters.initialise(Context(1), 0);
  EXPECT_EQ(parameters.declare("w", Shape{2, 3}, {}), id);
  EXPECT_EQ(parameters.declare_buffer("bn.running_mean", 4, 0.5F), mean);
  EXPECT_EQ(parameters.declare_counter("bn.num_batches_tracked"), counter);
  EXPECT_THROW(parameters.declare("w", Shape{3, 2}, {}), std::invalid_argument);
  EXPECT_THROW(parameters.declare("new", Shape{1}, {}), std::invalid_argument);
  EXPECT_THROW(parameters.declare_buffer("bn.running_mean", 5, 0.5F), std::invalid_argument);
  EXPECT_THROW(parameters.declare_counter("bn.running_mean"), std::invalid_argument);
  EXPECT_THROW(parameters.declare_counter("new"), std::invalid_argument);
  EXPECT_EQ(parameters.buffer(mean)[3], 0.5F);
  EXPECT_EQ(parameters.counter(counter), 0);
}

}  // namespace
}  // namespace rk
