// The fixture of the tests that run every registered loss in every setting its reference lists, and
// how they compare gradients.
#pragma once

#include "tests/losses/reference.h"
#include "tests/support/made_up.h"
#include "tools/common/normalized_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rk {

inline double norm(const std::vector<double>& values) {
  double square = 0;
  for (const double v : values) square += v * v;
  return std::sqrt(square);
}

template <class A, class B> double distance(const std::vector<A>& a, const std::vector<B>& b) {
  double square = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    square += d * d;
  }
  return a.size() == b.size() ? std::sqrt(square) : std::numeric_limits<double>::infinity();
}

// Relative to the expected length; gradients below 1e-6 count as zero, as for the golden files.
template <class A> double relative(const std::vector<A>& got, const std::vector<double>& expected) {
  return distance(got, expected) / std::max(norm(expected), 1e-6);
}

// `grad` without the component of each row along its own embedding.
template <class A>
std::vector<double> tangent(const LossData<double>& data, const std::vector<A>& grad) {
  std::vector<double> out(grad.begin(), grad.end());
  if (data.embeddings.empty()) return out;
  const auto dim = static_cast<std::size_t>(data.dim);
  for (std::size_t at = 0; at < out.size(); at += dim) {
    double along = 0;
    for (std::size_t d = at; d < at + dim; ++d) along += out[d] * data.embeddings[d];
    for (std::size_t d = at; d < at + dim; ++d) out[d] -= along * data.embeddings[d];
  }
  return out;
}

// The numbers that a loss is a function of.
inline std::vector<double>& inputs(LossData<double>& data) {
  return data.embeddings.empty() ? data.scores : data.embeddings;
}

struct Spread {
  double loss = 0;
  double grad = 0;
};
// How far from `at`, its value for `data`, a loss and a part of its gradient move when the inputs
// move at random by up to `by`: the most of `draws` times.
template <class Run, class Part>
Spread spread_of(const LossData<double>& data, const LossResult<double>& at, double by,
                 std::uint64_t draws, const Run& run, const Part& part) {
  Spread spread;
  const auto& grad = part(at.grad);
  for (std::uint64_t k = 0; k < draws; ++k) {
    CounterRandom random(k, 6, 0);
    LossData<double> near = data;
    for (double& x : inputs(near)) x += by * random.uniform(-1, 1);
    const LossResult<double> there = run(near);
    spread.loss = std::max(spread.loss, std::abs(there.loss - at.loss));
    spread.grad = std::max(spread.grad, distance(part(there.grad), grad));
  }
  return spread;
}

using reference::all_specs;
using reference::specs_but_of;

class LossTest : public testing::TestWithParam<std::string> {
 protected:
  LossSpec spec_ = parse_loss(GetParam());
  LossKind kind_ = spec_.entry->kind;
  Context context_{1};  // most batches here are too small to share

  reference::Value expected(const LossData<double>& data) const {
    return reference::reference_of(spec_).value(data, spec_.values);
  }
  template <class S> LossResult<S> run(const LossData<S>& data) const {
    LossFunction<S> function(context_, spec_, data.shape(), false);
    return function(data);
  }
  LossData<double> made_up(std::uint64_t seed) const {
    return made_up::data(kind_, made_up::sizes(kind_, seed), seed);
  }
  // How far the exact loss and the part of its gradient along the sphere move when the inputs move
  // by a rounding of float. No code in float can be more accurate: small temperatures and roots
  // near 0 amplify that rounding.
  Spread rounding_spread(const LossData<double>& data, const LossResult<double>& at) const {
    return spread_along(data, at, kRoundoff, 3);
  }
  // Whether float's and double's gradients are less than allowed(spread) apart. If they are not
  // for rounding_spread(), many more draws count, and of twice the movement, since products are
  // rounded too: a pair at a kink or at the edge of a bin may fall on its other side in float and
  // in few of the draws alone.
  template <class Allowed>
  bool is_within(double apart, const Allowed& allowed, const LossData<double>& data,
                 const LossResult<double>& exact, const Spread& spread) const {
    return apart < allowed(spread) ||
           apart < allowed(spread_along(data, exact, 2 * kRoundoff, 100));
  }
  template <class Allowed>
  void expect_within(double apart, const Allowed& allowed, const LossData<double>& data,
                     const LossResult<double>& exact, const Spread& spread,
                     std::uint64_t seed) const {
    ASSERT_TRUE(is_within(apart, allowed, data, exact, spread))
        << apart << " apart, of " << allowed(spread) << ", seed " << seed;
  }

 private:
  static constexpr double kRoundoff = 6e-8;

  Spread spread_along(const LossData<double>& data, const LossResult<double>& at, double by,
                      std::uint64_t draws) const {
    const auto along = [&](const std::vector<double>& grad) { return tangent(data, grad); };
    return spread_of(
        data, at, by, draws, [&](const auto& near) { return run(near); }, along);
  }
};

inline std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    name += plain ? c : '_';
  }
  return name;
}

}  // namespace rk
