// Every registered loss, in every setting its reference lists, against that reference.
#include "tests/losses/loss_test.h"
#include "tests/support/random_seed.h"

#include <fmt/format.h>

#include <set>

namespace rk {
namespace {

class Conformance : public LossTest {
 protected:
  void check_against_reference(const LossData<double>& data, const std::string& what) const {
    const reference::Value value = expected(data);
    const LossResult<double> result = run(data);
    EXPECT_EQ(result.valid_queries, value.valid) << what;
    EXPECT_NEAR(result.loss, value.loss, 1e-9 * std::abs(value.loss) + 1e-12) << what;
    if (!value.grad.empty()) {
      EXPECT_LT(relative(result.grad, value.grad), 1e-9) << what;
    }
    if (value.valid == 0) {
      EXPECT_EQ(result.loss, 0) << what;
      EXPECT_EQ(norm(result.grad), 0) << what;
      EXPECT_EQ(norm(result.grad_proxies), 0) << what;
    }
  }

  bool float_agrees(std::uint64_t seed) const {
    const LossData<double> data = made_up(seed);
    const LossResult<double> exact = run(data);
    const LossResult<float> result = run(made_up::as_float(data));
    EXPECT_EQ(result.valid_queries, exact.valid_queries) << "seed " << seed;
    const Spread spread = rounding_spread(data, exact);
    const double of_loss = std::abs(static_cast<double>(result.loss) - exact.loss);
    if (!(of_loss <= 1e-5 * std::abs(exact.loss) + 1e-7 + 5 * spread.loss)) return false;
    if (!spec_.entry->differentiable) return true;  // a rank may flip between the precisions
    // Without the component along each embedding: rounding decides on which side of a score of 1 a
    // duplicate falls.
    const std::vector<double> expected_grad = tangent(data, exact.grad);
    // 1e-7: curves near 1 (AUC) lose everything below float's spacing there.
    return is_within(
               distance(tangent(data, result.grad), expected_grad),
               [&](const Spread& of) { return 1e-5 * norm(expected_grad) + 1e-7 + 5 * of.grad; },
               data, exact, spread) &&
           relative(result.grad_proxies, exact.grad_proxies) < 1e-5;
  }

  // Elements of gradients beside differences of the reference.
  struct Elements {
    int all = 0;
    int smooth = 0;  // two differences agree, and the element agrees with them
    int unlike = 0;  // two differences agree, but the element differs from them
    int beyond = 0;  // not between the slopes on both sides
  };

  // Single elements of the batch rather than all: each takes many evaluations of the reference.
  void compare_with_differences(std::uint64_t seed, Elements& elements) const {
    LossData<double> data = made_up(seed);
    const LossResult<double> result = run(data);
    CounterRandom random(seed, 3, 0);
    for (int k = 0; k < 6; ++k) {
      const bool proxy = kind_ == LossKind::kProxies && k % 2 == 1;
      std::vector<double>& values = proxy ? data.proxies : inputs(data);
      const std::vector<double>& grad = proxy ? result.grad_proxies : result.grad;
      const auto at =
          static_cast<std::size_t>(random.below(static_cast<std::int64_t>(values.size())));
      const double kept = values[at];
      const auto loss_at = [&](double by) {
        values[at] = kept + by;
        const double loss = expected(data).loss;
        values[at] = kept;
        return loss;
      };
      const auto difference = [&](double step) {
        return (loss_at(step) - loss_at(-step)) / (2 * step);
      };
      // Central differences of sixth order: their error falls with (h / tau)^6.
      const auto sharp_difference = [&](double step) {
        return 1.5 * difference(step) - 0.6 * difference(2 * step) + 0.1 * difference(3 * step);
      };
      const double h = 2e-5;
      const double sharp = sharp_difference(h);
      const double unsure = std::abs(sharp - sharp_difference(1.5 * h));
      // Cancellation: 1e-16 / h = 5e-12 of the loss.
      const double noise = 2e-11 * std::max(1.0, std::abs(result.loss));
      ++elements.all;
      if (unsure < 1e-9 * norm(grad) + noise) {
        if (std::abs(sharp - grad[at]) <= 1e-9 * norm(grad) + 3 * noise + 3 * unsure) {
          ++elements.smooth;
          continue;
        }
        ++elements.unlike;
        fmt::print("seed {} element {}: {}, unlike {}\n", seed, at, grad[at], sharp);
      }
      // A kink is near, or here: the gradient lies between the slopes on both sides. A shorter step
      // passes most kinks, with an error of (1e-6 / tau)^2; a longer step shows how far the shorter
      // one may be off. Steps are too long only beside the root of a distance near 0.
      const double step = 1e-6;
      const double here = loss_at(0);
      const auto [least, most] =
          std::minmax({(here - loss_at(-step)) / step, (loss_at(step) - here) / step});
      const double bend = std::abs(difference(step) - difference(2 * step));
      const double unsure_by = 1e-6 * norm(grad) + 1e-8 + bend;
      if (grad[at] >= least - unsure_by && grad[at] <= most + unsure_by) continue;
      ++elements.beyond;
      fmt::print("seed {} element {}: {}, beyond [{}, {}] by more than {}\n", seed, at, grad[at],
                 least, most, unsure_by);
    }
  }
};

TEST(LossReference, LossesAndReferencesHaveTheSameNames) {
  std::set<std::string> losses;
  for (const LossEntry& entry : loss_registry()) losses.insert(entry.name);
  for (const std::string& name : losses) {
    EXPECT_TRUE(reference::references().contains(name)) << name << " has no reference";
  }
  for (const auto& [name, reference] : reference::references()) {
    EXPECT_TRUE(losses.contains(name)) << name << " is no loss";
  }
}

TEST(LossReference, IsCompleteAndItsSettingsAreOfItsLoss) {
  for (const auto& [name, reference] : reference::references()) {
    EXPECT_NE(reference.value, nullptr) << name;
    for (const std::string& spec : reference.specs) EXPECT_EQ(parse_loss(spec).entry->name, name);
    const bool of_scores = parse_loss(name).entry->kind == LossKind::kScores;
    EXPECT_EQ(reference.term == nullptr, of_scores) << name;
  }
}

TEST_P(Conformance, ValueIsTheReferencesOnRandomShapes) {
  const bool defaults = GetParam().find(':') == std::string::npos;
  const std::uint64_t shapes = defaults ? 1000 : 200;
  for (const std::uint64_t seed : random_seeds(shapes)) {
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

// The same batches in every run: each must agree.
TEST_P(Conformance, FloatAgreesWithDouble) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    ASSERT_TRUE(float_agrees(seed)) << "seed " << seed;
  }
}

// Few in a thousand batches are further apart: where a pair lies at a kink or a step, such as a
// score of 1, and float falls on its other side though few of spread_of()'s draws do; and where a
// gradient is so small that it is a difference of numbers near 1.
TEST_P(Conformance, FloatAgreesWithDoubleOnDrawnBatches) {
  constexpr int kBatches = 200;
  int apart = 0;
  for (const std::uint64_t seed : random_seeds(kBatches)) {
    if (float_agrees(seed)) continue;
    ++apart;
    fmt::print("seed {}\n", seed);
  }
  EXPECT_LE(apart, kBatches / 40);
}

// The same batches in every run: each element must agree.
TEST_P(Conformance, GradientIsWhatDifferencesOfTheReferenceSay) {
  if (!spec_.entry->differentiable) GTEST_SKIP() << "no derivative; compared directly above";
  Elements elements;
  for (std::uint64_t seed = 0; seed < 60; ++seed) compare_with_differences(seed, elements);
  EXPECT_GT(elements.smooth, elements.all / 3) << "of " << elements.all;
  EXPECT_EQ(elements.unlike, 0);
  EXPECT_EQ(elements.beyond, 0);
}

// Few elements are further apart: where a kink lies between the points of both differences, so that
// these agree with each other, and beside the root of a distance near 0.
TEST_P(Conformance, GradientIsWhatDifferencesSayOnDrawnBatches) {
  if (!spec_.entry->differentiable) GTEST_SKIP() << "no derivative; compared directly above";
  Elements elements;
  for (const std::uint64_t seed : random_seeds(60)) compare_with_differences(seed, elements);
  EXPECT_GT(elements.smooth, elements.all / 3) << "of " << elements.all;
  EXPECT_LE(elements.unlike, elements.all / 180) << "of " << elements.all;
  EXPECT_LE(elements.beyond, elements.all / 60) << "of " << elements.all;
}

TEST_P(Conformance, ValueIsTheReferencesOnDuplicatesAndTies) {
  for (const std::uint64_t seed : random_seeds(100)) {
    const LossData<double> data = made_up::tied(kind_, made_up::sizes(kind_, seed), seed);
    check_against_reference(data, "seed " + std::to_string(seed));
  }
}

// n = 2 to 5 with every size of class: one class, all singletons, and between.
TEST_P(Conformance, ValueIsTheReferencesOnTheSmallestBatches) {
  for (const std::int64_t rows : {2, 3, 4, 5}) {
    for (const std::int64_t classes : {std::int64_t{1}, std::int64_t{2}, std::int64_t{1000}}) {
      for (const std::uint64_t seed : random_seeds(5)) {
        made_up::Wanted wanted;
        wanted.rows = rows;
        wanted.dim = 3;
        wanted.classes = classes;
        if (kind_ != LossKind::kEmbeddings) wanted.classes = std::min(classes, rows);
        check_against_reference(made_up::data(kind_, wanted, seed),
                                std::to_string(rows) + " rows, " + std::to_string(classes) +
                                    " classes, seed " + std::to_string(seed));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, Conformance, testing::ValuesIn(all_specs()), test_name);

}  // namespace
}  // namespace rk
