// Every registered loss, in every setting its reference lists, against that reference and against
// the properties all losses share.
#include "engine/error.h"
#include "tests/losses/made_up.h"
#include "tests/losses/reference.h"
#include "tools/normalized_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace rk {
namespace {

double norm(const std::vector<double>& values) {
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

// `grad` less the part of each row along its own embedding.
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

std::vector<std::string> all_specs() {
  std::vector<std::string> specs;
  for (const auto& [name, reference] : reference::references()) {
    specs.insert(specs.end(), reference.specs.begin(), reference.specs.end());
  }
  return specs;
}

class Conformance : public testing::TestWithParam<std::string> {
 protected:
  LossSpec spec_ = parse_loss(GetParam());
  LossKind kind_ = spec_.entry->kind;
  Context context_{1};  // most batches here are too small to share

  reference::Value expected(const LossData<double>& data) const {
    return reference::references().at(spec_.entry->name).value(data, spec_.values);
  }
  template <class S> LossResult<S> run(const LossData<S>& data) const {
    LossFunction<S> function(context_, spec_, data.shape(), false);
    return function(data);
  }
  LossData<double> made_up(std::uint64_t seed) const {
    return made_up::data(kind_, made_up::sizes(kind_, seed), seed);
  }
  // What the loss is a function of.
  std::vector<double>& moved(LossData<double>& data) const {
    return kind_ == LossKind::kScores ? data.scores : data.embeddings;
  }
  // How far the exact gradient moves when the embeddings move by a rounding of float: near a
  // duplicate, say, a distance has no more digits to give.
  double rounding_spread(const LossData<double>& data, const std::vector<double>& grad) const {
    double spread = 0;
    for (std::uint64_t k = 0; k < 3; ++k) {
      CounterRandom random(k, 6, 0);
      LossData<double> moved = data;
      for (double& x : moved.embeddings) x += 6e-8 * random.uniform(-1, 1);
      spread = std::max(spread, distance(tangent(data, run(moved).grad), grad));
    }
    return spread;
  }
  // True where the setting changes the gradient alone, so that differences do not see it.
  bool gradient_is_scaled() const { return GetParam().starts_with("fastap:compat=official"); }
};

TEST(LossReference, EveryRegisteredLossHasOne) {
  for (const LossEntry& entry : loss_registry()) {
    EXPECT_TRUE(reference::references().contains(entry.name)) << entry.name;
  }
}

TEST_P(Conformance, ValueIsTheReferencesOnRandomShapes) {
  const bool defaults = GetParam().find(':') == std::string::npos;
  const std::uint64_t shapes = defaults ? 1000 : 200;
  for (std::uint64_t seed = 0; seed < shapes; ++seed) {
    const LossData<double> data = made_up(seed);
    const reference::Value value = expected(data);
    const LossResult<double> result = run(data);
    ASSERT_EQ(result.valid_queries, value.valid) << "seed " << seed;
    // Sums of up to 50 terms in another order; the product's logarithms and exponentials are
    // libm's.
    ASSERT_NEAR(result.loss, value.loss, 1e-9 * std::abs(value.loss) + 1e-12) << "seed " << seed;
    if (!value.grad.empty()) {
      ASSERT_LT(relative(result.grad, value.grad), 1e-9) << "seed " << seed;
    }
  }
}

TEST_P(Conformance, FloatAgreesWithDouble) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const LossData<double> data = made_up(seed);
    const LossResult<double> exact = run(data);
    const LossResult<float> result = run(made_up::as_float(data));
    ASSERT_EQ(result.valid_queries, exact.valid_queries);
    // A similarity is off by 1e-7, which a temperature of 0.01 makes 1e-5 of a sigmoid.
    ASSERT_NEAR(result.loss, exact.loss, 2e-5 * std::abs(exact.loss) + 1e-6) << "seed " << seed;
    if (!spec_.entry->differentiable) continue;  // a rank may flip between the precisions
    // Without the part along each embedding: on which side of a score of 1 a duplicate falls
    // differs.
    const std::vector<double> expected_grad = tangent(data, exact.grad);
    // 1e-7: curves near 1 (AUC) lose what lies below float's steps there.
    const double allowed =
        1e-4 * norm(expected_grad) + 1e-7 + 20 * rounding_spread(data, expected_grad);
    ASSERT_LT(distance(tangent(data, result.grad), expected_grad), allowed) << "seed " << seed;
    ASSERT_LT(relative(result.grad_proxies, exact.grad_proxies), 1e-4) << "seed " << seed;
  }
}

TEST_P(Conformance, GradientIsWhatDifferencesOfTheReferenceSay) {
  if (!spec_.entry->differentiable) GTEST_SKIP() << "piecewise constant; compared directly above";
  if (gradient_is_scaled()) GTEST_SKIP() << "this setting scales the gradient";
  const double h = 1e-6;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    LossData<double> data = made_up(seed);
    const LossResult<double> result = run(data);
    CounterRandom random(seed, 3, 0);
    // Some single elements rather than all: each takes two evaluations of the reference.
    for (int k = 0; k < 6; ++k) {
      const bool proxy = kind_ == LossKind::kProxies && k % 2 == 1;
      std::vector<double>& values = proxy ? data.proxies : moved(data);
      const std::vector<double>& grad = proxy ? result.grad_proxies : result.grad;
      const auto at =
          static_cast<std::size_t>(random.below(static_cast<std::int64_t>(values.size())));
      const double kept = values[at];
      const auto difference = [&](double step) {
        values[at] = kept + step;
        const double above = expected(data).loss;
        values[at] = kept - step;
        const double below = expected(data).loss;
        values[at] = kept;
        return (above - below) / (2 * step);
      };
      // Second-order terms: (h / tau)^2 = 1e-8 of the gradient's size; cancellation: 1e-16 / h; and
      // what the step itself is worth where a distance near 0 bends, which a longer step tells.
      const double slope = difference(h);
      const double bend = std::abs(slope - difference(2 * h));
      ASSERT_NEAR(slope, grad[at], 1e-6 * norm(grad) + 1e-8 + bend)
          << "seed " << seed << " element " << at;
    }
  }
}

TEST_P(Conformance, PermutingTheBatchPermutesTheGradient) {
  if (kind_ == LossKind::kScores) GTEST_SKIP() << "rows of scores have no batch order to permute";
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const LossData<double> data = made_up(seed);
    std::vector<std::size_t> order(static_cast<std::size_t>(data.rows));
    std::iota(order.begin(), order.end(), std::size_t{0});
    CounterRandom random(seed, 4, 0);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1],
                order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
    }
    const auto dim = static_cast<std::size_t>(data.dim);
    LossData<double> permuted = data;
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::copy_n(data.embeddings.begin() + static_cast<std::ptrdiff_t>(order[i] * dim), dim,
                  permuted.embeddings.begin() + static_cast<std::ptrdiff_t>(i * dim));
      permuted.labels[i] = data.labels[order[i]];
      if (!data.identities.empty()) permuted.identities[i] = data.identities[order[i]];
    }
    const LossResult<double> before = run(data);
    const LossResult<double> after = run(permuted);
    ASSERT_NEAR(after.loss, before.loss, 1e-10);
    std::vector<double> back(after.grad.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::copy_n(after.grad.begin() + static_cast<std::ptrdiff_t>(i * dim), dim,
                  back.begin() + static_cast<std::ptrdiff_t>(order[i] * dim));
    }
    ASSERT_LT(relative(back, before.grad), 1e-9) << "seed " << seed;
  }
}

TEST_P(Conformance, RotatingEverythingRotatesTheGradient) {
  if (kind_ == LossKind::kScores) GTEST_SKIP() << "scores have no direction to rotate";
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const LossData<double> data = made_up(seed);
    const auto dim = static_cast<std::size_t>(data.dim);
    CounterRandom random(seed, 5, 0);
    std::vector<double> axis(dim);
    for (double& x : axis) x = random.normal();
    double square = 0;
    for (const double x : axis) square += x * x;
    // The reflection I - 2 a a^T / a.a is orthogonal, which is all that is needed.
    const auto reflect = [&](std::vector<double> rows) {
      for (std::size_t at = 0; at < rows.size(); at += dim) {
        double along = 0;
        for (std::size_t d = 0; d < dim; ++d) along += rows[at + d] * axis[d];
        for (std::size_t d = 0; d < dim; ++d) rows[at + d] -= 2 * along / square * axis[d];
      }
      return rows;
    };
    LossData<double> turned = data;
    turned.embeddings = reflect(data.embeddings);
    turned.memory_embeddings = reflect(data.memory_embeddings);
    turned.proxies = reflect(data.proxies);
    const LossResult<double> before = run(data);
    const LossResult<double> after = run(turned);
    ASSERT_NEAR(after.loss, before.loss, 1e-9);
    ASSERT_LT(relative(after.grad, reflect(before.grad)), 1e-6) << "seed " << seed;
  }
}

TEST_P(Conformance, SmallAndDegenerateBatchesGiveFiniteNumbers) {
  for (const std::int64_t rows : {1, 2, 3, 17}) {
    for (const std::int64_t classes : {std::int64_t{1}, rows}) {
      made_up::Wanted wanted;
      wanted.rows = rows;
      wanted.classes = classes;
      LossData<double> data = made_up::data(kind_, wanted, 7);
      // All the same vector: every similarity is a tie.
      for (std::size_t i = 0; i < data.embeddings.size(); ++i) {
        data.embeddings[i] = data.embeddings[i % static_cast<std::size_t>(data.dim)];
      }
      for (double& s : data.scores) s = 0.25;
      const reference::Value value = expected(data);
      for (int precision = 0; precision < 2; ++precision) {
        const auto check = [&](double loss, const auto& grad, std::int64_t valid) {
          EXPECT_TRUE(std::isfinite(loss)) << rows << " rows, " << classes << " classes";
          EXPECT_EQ(valid, value.valid);
          for (const auto g : grad) EXPECT_TRUE(std::isfinite(g));
          if (valid == 0) {
            EXPECT_EQ(loss, 0);
            for (const auto g : grad) EXPECT_EQ(g, 0);
          }
        };
        if (precision == 0) {
          const auto result = run(data);
          check(result.loss, result.grad, result.valid_queries);
        } else {
          const auto result = run(made_up::as_float(data));
          check(result.loss, result.grad, result.valid_queries);
        }
      }
    }
  }
}

TEST_P(Conformance, NothingIsWrittenOutsideTheGradient) {
  made_up::Wanted wanted;
  wanted.rows = 19;  // no multiple of anything
  wanted.dim = 5;
  wanted.memory = kind_ == LossKind::kEmbeddings ? 3 : 0;
  const LossData<float> data = made_up::as_float(made_up::data(kind_, wanted, 11));
  constexpr std::size_t kGuard = 64;
  constexpr float kSentinel = 12345.5F;
  const auto loss = make_loss<float>(spec_);
  loss->plan(context_, data.shape());
  const auto guarded = [&](std::int64_t elements) {
    std::vector<float> out(static_cast<std::size_t>(elements) + 2 * kGuard, kSentinel);
    std::fill(out.begin() + kGuard, out.end() - kGuard, std::numeric_limits<float>::quiet_NaN());
    return out;
  };
  std::vector<float> grad = guarded(data.grad_elements(kind_));
  std::vector<float> grad_proxies = guarded(data.proxy_elements(kind_));
  LossOutput<float> output;
  output.grad = grad.data() + kGuard;
  output.grad_proxies = grad_proxies.data() + kGuard;
  loss->run(context_, data.input(), output);
  for (const std::vector<float>* values : {&grad, &grad_proxies}) {
    for (std::size_t i = 0; i < values->size(); ++i) {
      const float value = (*values)[i];
      if (i < kGuard || i >= values->size() - kGuard) {
        ASSERT_EQ(value, kSentinel) << "element " << i;
      } else {
        ASSERT_TRUE(std::isfinite(value)) << "element " << i - kGuard;
      }
    }
  }
}

TEST_P(Conformance, TheSameBatchGivesTheSameBitsWhateverTheThreads) {
  const LossData<double> data = made_up(21);
  const LossResult<double> first = run(data);
  for (const int threads : {2, 3}) {
    const Context context(threads);
    LossFunction<double> function(context, spec_, data.shape(), false);
    (void)function(data);
    const LossResult<double> again =
        function(data);  // over what the first call left in the buffers
    EXPECT_EQ(again.loss, first.loss);
    EXPECT_EQ(again.grad, first.grad);
    EXPECT_EQ(again.grad_proxies, first.grad_proxies);
  }
}

TEST_P(Conformance, ASmallerBatchThanPlannedIsFine) {
  const LossData<double> data = made_up(22);
  LossShape larger = data.shape();
  larger.rows += 9;
  larger.memory += 4;
  LossFunction<double> function(context_, spec_, larger, false);
  const LossResult<double> result = function(data);
  const LossResult<double> expected = run(data);
  EXPECT_EQ(result.loss, expected.loss);
  EXPECT_EQ(result.grad, expected.grad);
}

TEST_P(Conformance, NanIsAnErrorThatNamesTheRow) {
  made_up::Wanted wanted;
  wanted.rows = 9;
  wanted.dim = 4;
  LossData<double> data = made_up::data(kind_, wanted, 3);
  std::vector<double>& values = moved(data);
  const std::size_t width = values.size() / 9;
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    values[6 * width + 1] = bad;
    try {
      (void)run(data);
      FAIL() << "no error";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("row 6 "), std::string::npos) << error.what();
    }
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    name += plain ? c : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Losses, Conformance, testing::ValuesIn(all_specs()), test_name);

}  // namespace
}  // namespace rk
