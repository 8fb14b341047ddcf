#include "training/optimizer.h"

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "tests/support/parameter_id.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace rk {
namespace {

std::vector<float> ramp(std::int64_t count, double scale) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<float>(scale * std::sin(0.7 * static_cast<double>(i) + scale)));
  }
  return out;
}

// The formulas of the header for one parameter, in double, independent of the product's code.
struct Reference {
  OptimizerParams params;
  double rate = 0, decay = 0;
  double p = 0, first = 0, second = 0;
  // What Adam makes of roundings in float32: it divides g by its own size, so that one near 0, the
  // difference of a gradient and a decay, keeps little of its digits.
  double rounded = 0, slack = 0;

  void step(double g, int t) {
    rounded = std::max(rounded, 6e-8 * (std::abs(g) + std::abs(decay * p)));
    if (params.kind == OptimizerKind::kSgd) {
      g += decay * p;
      first = t == 1 ? g : params.momentum * first + g;
      if (params.momentum == 0)
        p -= rate * g;
      else
        p -= rate * (params.nesterov ? g + params.momentum * first : first);
      return;
    }
    if (params.kind == OptimizerKind::kAdamW)
      p *= 1 - rate * decay;
    else
      g += decay * p;
    first = params.beta1 * first + (1 - params.beta1) * g;
    second = params.beta2 * second + (1 - params.beta2) * g * g;
    const double mean = first / (1 - std::pow(params.beta1, t));
    const double square = second / (1 - std::pow(params.beta2, t));
    p -= rate * mean / (std::sqrt(square) + params.eps);
    slack += 4 * rate * rounded / (std::sqrt(square) + params.eps);
  }
};

std::vector<OptimizerParams> all_kinds() {
  return {{.kind = OptimizerKind::kAdam},
          {.kind = OptimizerKind::kAdamW, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6},
          {.kind = OptimizerKind::kSgd},
          {.kind = OptimizerKind::kSgd, .momentum = 0.9},
          {.kind = OptimizerKind::kSgd, .momentum = 0.9, .nesterov = true}};
}

// Ranges of up to `count` elements in any order, with gaps that are in no group; neighbours may
// share their rate, their decay or both.
std::vector<OptimizerGroup> drawn_groups(CounterRandom& random, std::int64_t count) {
  std::vector<OptimizerGroup> groups;
  for (std::int64_t begin = 0; begin < count;) {
    const std::int64_t end = std::min(count, begin + 1 + random.below(random.below(2) * 900 + 20));
    if (random.below(4) > 0) {
      groups.push_back({.begin = begin,
                        .end = end,
                        .rate_factor = random.below(2) == 0 ? 1.0 : random.uniform(0.1, 10),
                        .weight_decay = random.below(2) == 0 ? 0.0 : random.uniform(0, 0.3)});
    }
    begin = end;
  }
  for (std::size_t i = groups.size(); i > 1; --i)
    std::swap(groups[i - 1],
              groups[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  return groups;
}

OptimizerParams drawn_params(CounterRandom& random) {
  const std::vector<OptimizerParams> kinds = all_kinds();
  OptimizerParams params =
      kinds[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(kinds.size())))];
  params.beta1 = random.uniform(0, 0.95);
  params.beta2 = random.uniform(0.5, 0.999);
  params.eps = random.uniform(1e-6, 1e-3);
  if (params.momentum > 0) params.momentum = random.uniform(0.1, 0.95);
  if (random.below(2) == 0) params.clip_norm = random.uniform(0.1, 3);
  return params;
}

TEST(Optimizer, FollowsTheFormulasOnDrawnGroups) {
  CounterRandom random(random_seed(), 0, 0);
  for (int drawn = 0; drawn < 100; ++drawn) {
    const std::int64_t count = 1 + random.below(random.below(2) == 0 ? 40 : 3000);
    const std::vector<OptimizerGroup> groups = drawn_groups(random, count);
    const OptimizerParams params = drawn_params(random);
    const Context context(static_cast<int>(1 + random.below(3)));
    Optimizer optimizer(context, params, groups, count);
    const auto normals = [&](double size) {
      std::vector<float> values;
      for (std::int64_t i = 0; i < count; ++i)
        values.push_back(static_cast<float>(size * random.normal()));
      return values;
    };
    std::vector<float> p = normals(1);
    const std::vector<float> before = p;
    std::vector<Reference> reference(p.size());
    std::vector<double> rate_factors(p.size(), 0);
    for (const OptimizerGroup& group : groups) {
      for (std::int64_t i = group.begin; i < group.end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        reference[at] = {params, 0, group.weight_decay, p[at]};
        rate_factors[at] = group.rate_factor;
      }
    }
    StepState state;
    for (int t = 1; t <= 5; ++t) {
      state.rate = random.uniform(0, 0.02);
      const std::vector<float> g = normals(0.3);
      optimizer.step(context, &state, p.data(), g.data());
      double squares = 0;
      for (const float value : g)
        squares += static_cast<double>(value) * static_cast<double>(value);
      const double norm = std::sqrt(squares);
      // PyTorch's clip_grad_norm_ without its 1e-6.
      const double kept = params.clip_norm > 0 ? std::min(1.0, params.clip_norm / norm) : 1.0;
      for (std::size_t i = 0; i < p.size(); ++i) {
        reference[i].rate = state.rate * rate_factors[i];
        if (rate_factors[i] > 0) reference[i].step(kept * static_cast<double>(g[i]), t);
      }
    }
    for (std::size_t i = 0; i < p.size(); ++i) {
      // Five steps in float32, each with a few roundings of 6e-8 of numbers below 10.
      const double tolerance = rate_factors[i] == 0 ? 0 : 5e-6 + reference[i].slack;
      ASSERT_NEAR(p[i], rate_factors[i] == 0 ? before[i] : reference[i].p, tolerance)
          << "case " << drawn << ", parameter " << i << " of " << count;
    }
  }
}

TEST(OptimizerGroups, CoverEveryParameterWithEmbeddingAndProxiesApart) {
  Parameters parameters;
  parameters.declare("conv1.weight", Shape{3, 5}, {});
  parameters.declare("bn1.bias", Shape{7}, {});
  parameters.declare("embedding.weight", Shape{4, 3}, {}, ParameterGroup::kEmbedding);
  parameters.declare("proxies", Shape{9, 3}, {}, ParameterGroup::kProxies);
  parameters.allocate(Context(1));
  const auto groups =
      optimizer_groups(parameters, {.weight_decay = 0.5, .embedding_rate = 10, .proxy_rate = 100});
  std::vector<double> factor(parameters.flat_elements(), 0.0);
  for (const OptimizerGroup& group : groups) {
    EXPECT_EQ(group.weight_decay, 0.5);
    for (std::int64_t i = group.begin; i < group.end; ++i) {
      EXPECT_EQ(factor[static_cast<std::size_t>(i)], 0.0) << "twice";
      factor[static_cast<std::size_t>(i)] = group.rate_factor;
    }
  }
  for (const Parameters::Entry& entry : parameters.entries()) {
    for (std::int64_t i = 0; i < entry.elements(); ++i) {
      EXPECT_EQ(factor[static_cast<std::size_t>(entry.offset + i)],
                entry.name == "proxies"               ? 100.0
                : entry.name.starts_with("embedding") ? 10.0
                                                      : 1.0);
    }
  }
}

// Only biases and batch norm's weights have one dimension.
TEST(OptimizerGroups, NormsAndBiasesNeedNotDecayAndWhatIsFrozenDoesNothing) {
  Parameters parameters;
  parameters.freeze({"stem"});
  parameters.declare("stem.weight", Shape{3, 5}, {});
  parameters.declare("bn1.weight", Shape{7}, {});
  parameters.declare("layer1.weight", Shape{2, 4, 3, 3}, {});
  parameters.declare("embedding.bias", Shape{4}, {}, ParameterGroup::kEmbedding);
  parameters.declare("proxies", Shape{9, 3}, {}, ParameterGroup::kProxies);
  const LearningPolicy learning{
      .weight_decay = 0.5, .embedding_rate = 10, .proxy_rate = 100, .decays_norms = false};
  const auto expect_group = [&](const std::string& name, double factor, double decay) {
    const Parameters::Entry& entry = parameters.entry(id_of(parameters, name));
    const auto groups = optimizer_groups(parameters, learning);
    const auto group = std::ranges::find(groups, entry.offset, &OptimizerGroup::begin);
    ASSERT_NE(group, groups.end()) << name;
    EXPECT_EQ(group->rate_factor, factor) << name;
    EXPECT_EQ(group->weight_decay, decay) << name;
  };
  expect_group("stem.weight", 0, 0);
  expect_group("bn1.weight", 1, 0);
  expect_group("layer1.weight", 1, 0.5);
  expect_group("embedding.bias", 10, 0);
  expect_group("proxies", 100, 0.5);
}

// Clipping keeps the gradient's direction and limits its length: compared with a step on a gradient
// clipped by hand.
TEST(Optimizer, ClipsAtTheGlobalNorm) {
  constexpr std::int64_t kCount = 301;
  const Context context(2);
  for (OptimizerParams params : all_kinds()) {
    for (const double most : {0.0, 0.7, 1e6}) {
      params.clip_norm = 0;
      Optimizer plain(context, params, {{0, kCount, 1.0, 0.05}}, kCount);
      params.clip_norm = most;
      Optimizer clipped(context, params, {{0, kCount, 1.0, 0.05}}, kCount);
      StepState one{.rate = 0.1}, other{.rate = 0.1};
      std::vector<float> p = ramp(kCount, 1.0), q = p;
      for (int t = 1; t <= 3; ++t) {
        const std::vector<float> g = ramp(kCount, 0.4 * t);
        double square = 0;
        for (const float x : g) square += static_cast<double>(x) * static_cast<double>(x);
        const double norm = std::sqrt(square);
        const double factor = most > 0 && norm > most ? most / norm : 1.0;
        std::vector<float> by_hand = g;
        for (float& x : by_hand) x *= static_cast<float>(factor);
        plain.step(context, &one, p.data(), by_hand.data());
        clipped.step(context, &other, q.data(), g.data());
        EXPECT_NEAR(other.norm, norm, 1e-12 * norm);  // before clipping
      }
      EXPECT_EQ(p, q) << most;
    }
  }
}

// After a loss that is not finite, whatever its gradient, or, without a scale, after such a
// gradient, nothing changes any more. With a scale, it takes several such gradients in a row.
TEST(Optimizer, HaltsWhereNoSmallerScaleHelps) {
  constexpr std::int64_t kCount = 33;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr double kFine = 0.5;
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Context context(1);
  const std::vector<float> fine = ramp(kCount, 1.0);
  std::vector<float> bad = fine;
  bad.back() = kInfinity;
  Optimizer optimizer(context, {}, {{0, kCount, 1.0, 0.0}}, kCount);
  std::vector<float> p = ramp(kCount, 1.0);
  const std::vector<float> before = p;
  const auto halted = [&](StepState& state, const std::vector<float>& gradient, double loss) {
    optimizer.step(context, &state, p.data(), gradient.data(), &loss);
    EXPECT_EQ(p, before);
    EXPECT_FALSE(state.finite);
    return state.halted;
  };
  StepState plain{.rate = 0.1}, by_loss{.rate = 0.1, .dynamic_scale = true};
  EXPECT_TRUE(halted(plain, bad, kFine));
  EXPECT_TRUE(halted(plain, fine, kFine));
  EXPECT_TRUE(halted(by_loss, fine, kNaN));
  EXPECT_TRUE(halted(by_loss, fine, kFine));
  StepState scaled{.rate = 0.1, .loss_scale = 1024, .dynamic_scale = true};
  for (std::int64_t i = 1; i < StepState::kMostSkipped; ++i) {
    EXPECT_FALSE(halted(scaled, bad, kFine)) << i;
  }
  EXPECT_TRUE(halted(scaled, bad, kFine));
  StepState goes_on{.rate = 0.1, .loss_scale = 2, .dynamic_scale = true};
  EXPECT_FALSE(halted(goes_on, bad, kFine));
  optimizer.step(context, &goes_on, p.data(), fine.data(), &kFine);
  EXPECT_TRUE(goes_on.finite);
  EXPECT_NE(p, before);
}

// Adam keeps squares: those of larger gradients are infinite in float32, and their parameter would
// never learn again.
TEST(Optimizer, WhatItKeepsOfAnUpdateIsFinite) {
  constexpr std::int64_t kCount = 40;
  const Context context(1);
  for (const OptimizerParams& params : all_kinds()) {
    for (const auto& [size, is_update] : {std::pair{9e18F, true}, std::pair{2e19F, false}}) {
      Optimizer optimizer(context, params, {{0, kCount, 1.0, 0.0}}, kCount);
      std::vector<float> p = ramp(kCount, 1.0), gradient(kCount, 0.0F);
      gradient[7] = size;
      StepState state{.rate = 0.1};
      optimizer.step(context, &state, p.data(), gradient.data());
      EXPECT_EQ(state.finite, is_update);
      for (const Optimizer::State& kept : optimizer.states()) {
        EXPECT_TRUE(std::all_of(kept.values, kept.values + kept.count, [](float x) {
          return std::isfinite(x);
        })) << kept.name;
      }
    }
  }
}

TEST(Optimizer, RoundsAlikeForAnyNumberOfThreads) {
  constexpr std::int64_t kCount = 1021;
  for (const OptimizerParams& params : all_kinds()) {
    std::vector<std::vector<float>> results;
    for (int threads : {1, 2, 3}) {
      const Context context(threads);
      Optimizer optimizer(context, params, {{0, 400, 1.0, 0.01}, {400, kCount, 10.0, 0.0}}, kCount);
      StepState state{.rate = 0.01};
      std::vector<float> p = ramp(kCount, 1.0);
      for (int t = 1; t <= 3; ++t) {
        const std::vector<float> g = ramp(kCount, 0.3 * t);
        optimizer.step(context, &state, p.data(), g.data());
      }
      results.push_back(p);
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

// As with a checkpoint: from parameters, states() and the step's number, steps continue bit-equal.
TEST(Optimizer, ContinuesFromItsStates) {
  constexpr std::int64_t kCount = 57;
  const Context context(1);
  for (const OptimizerParams& params : all_kinds()) {
    Optimizer straight(context, params, {{0, kCount, 1.0, 0.05}}, kCount);
    std::vector<float> p = ramp(kCount, 1.0);
    const std::vector<float> g = ramp(kCount, 0.2);
    StepState state{.rate = 0.1};
    straight.step(context, &state, p.data(), g.data());

    Optimizer resumed(context, params, {{0, kCount, 1.0, 0.05}}, kCount);
    std::vector<float> q = p;
    const auto from = straight.states();
    const auto to = resumed.states();
    ASSERT_EQ(from.size(), to.size());
    for (std::size_t s = 0; s < from.size(); ++s) {
      EXPECT_EQ(from[s].name, to[s].name);
      std::copy_n(from[s].values, from[s].count, to[s].values);
    }
    StepState loaded{.rate = 0.1, .number = 1};
    straight.step(context, &state, p.data(), g.data());
    resumed.step(context, &loaded, q.data(), g.data());
    EXPECT_EQ(p, q);
  }
}

TEST(Optimizer, RefusesWhatCannotBeMeant) {
  const auto make = [](OptimizerParams params, std::vector<OptimizerGroup> groups) {
    const Context context(1);
    Optimizer optimizer(context, params, std::move(groups), 10);
  };
  EXPECT_THROW(make({.beta1 = 1.0}, {}), UsageError);
  EXPECT_THROW(make({.beta2 = -0.1}, {}), UsageError);
  EXPECT_THROW(make({.eps = 0.0}, {}), UsageError);
  EXPECT_THROW(make({.eps = std::numeric_limits<double>::quiet_NaN()}, {}), UsageError);
  EXPECT_THROW(make({.kind = OptimizerKind::kSgd, .nesterov = true}, {}), UsageError);
  EXPECT_THROW(make({.clip_norm = -1.0}, {}), UsageError);
  for (const double value : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(make({.kind = OptimizerKind::kSgd, .momentum = value}, {}), UsageError) << value;
  }
  EXPECT_THROW(make({}, {{.begin = 0, .end = 5, .weight_decay = -1}}), UsageError);
  for (const double value : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(make({}, {{.begin = 0, .end = 5, .rate_factor = value}}), UsageError) << value;
  }
  EXPECT_THROW(make({}, {{.begin = 0, .end = 11}}), std::invalid_argument);
  EXPECT_THROW(make({}, {{.begin = 0, .end = 6}, {.begin = 5, .end = 7}}), std::invalid_argument);
}

TEST(SquareSum, AddsUpInDoubleAndAlikeForAnyNumberOfThreads) {
  std::vector<float> g = ramp(100003, 1.0);
  long double sum = 0;
  for (float x : g) sum += static_cast<long double>(x) * static_cast<long double>(x);
  const double squares = square_sum(Context(1), g.data(), 100003);
  EXPECT_NEAR(squares, static_cast<double>(sum), 1e-10 * squares);
  EXPECT_EQ(squares, square_sum(Context(2), g.data(), 100003));
  EXPECT_EQ(square_sum(Context(2), g.data(), 0), 0.0);
}

TEST(SquareSum, IsFiniteExactlyIfEveryGradientIs) {
  std::vector<float> g(1000, std::numeric_limits<float>::max());  // squares overflow a float
  EXPECT_TRUE(std::isfinite(square_sum(Context(1), g.data(), 1000)));
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    for (std::size_t place : {std::size_t{0}, std::size_t{511}, std::size_t{999}}) {
      std::vector<float> h(1000, 0.5F);
      h[place] = bad;
      EXPECT_FALSE(std::isfinite(square_sum(Context(2), h.data(), 1000))) << bad << " " << place;
    }
  }
}

}  // namespace
}  // namespace rk
