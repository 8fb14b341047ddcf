// Every registered loss on some 5,000 columns, float against double: sums over that many, and rows
// whose columns are taken in several groups (kernels/rows/histogram_row.h).
#include "engine/base/sanitizers.h"
#include "tests/losses/loss_test.h"
#include "tests/support/random_seed.h"

namespace rk {
namespace {

class Large : public LossTest {
 protected:
  // A few queries, so that a case takes a fraction of a second.
  LossData<double> batch(std::uint64_t seed) const {
    CounterRandom random(seed, 1, 0);
    const std::int64_t columns = 4990 + random.below(21);
    made_up::Wanted wanted;
    wanted.dim = 16;
    if (kind_ == LossKind::kScores) {
      wanted.rows = columns;
      wanted.classes = 3;
      return made_up::data(kind_, wanted, seed);
    }
    wanted.rows = 16 + random.below(17);
    if (kind_ == LossKind::kProxies) {
      wanted.classes = columns;  // one proxy each
      return made_up::data(kind_, wanted, seed);
    }
    wanted.memory = columns - wanted.rows;
    wanted.classes = 300 + random.below(300);
    wanted.image_ids = true;
    return made_up::data(kind_, wanted, seed);
  }

  // Relative to the gradient's length. A pair at a hinge or at the edge of a bin may fall on one
  // side in float and on the other in double: each of 100,000 pairs contributes up to 1e-4, and at
  // most one or two differ.
  double grad_tolerance() const { return reference::reference_of(spec_).kinked ? 3e-4 : 1e-5; }

  // Rows of the gradient (for scores: elements) that may differ if the loss counts ranks. A rank
  // that flips between the precisions moves dLoss/dS at the positive and at the item it passes.
  // Expected flips, from positives times columns within 6e-8 of one: 0.1 with a few hundred
  // positives, 2 with thousands.
  std::int64_t by_flips() const {
    if (spec_.entry->differentiable) return 0;
    return kind_ == LossKind::kScores ? 2 * 12 : 3 * 2;
  }
};

TEST_P(Large, FloatAgreesWithDouble) {
  const std::uint64_t seed = random_seed();
  const LossData<double> data = batch(seed);
  const LossResult<double> exact = run(data);
  const LossResult<float> result = run(made_up::as_float(data));
  ASSERT_EQ(result.valid_queries, exact.valid_queries);
  ASSERT_GT(exact.valid_queries, 0);
  const Spread spread = rounding_spread(data, exact);
  EXPECT_NEAR(result.loss, exact.loss, 1e-5 * std::abs(exact.loss) + 1e-7 + 5 * spread.loss);
  EXPECT_LT(relative(result.grad_proxies, exact.grad_proxies), 1e-5);
  const std::vector<double> got = tangent(data, result.grad);
  const std::vector<double> wanted = tangent(data, exact.grad);
  if (spec_.entry->differentiable) {
    expect_within(
        distance(got, wanted),
        [&](const Spread& of) { return grad_tolerance() * norm(wanted) + 1e-7 + 5 * of.grad; },
        data, exact, spread, seed);
    return;
  }
  const std::size_t width = kind_ == LossKind::kScores ? 1 : static_cast<std::size_t>(data.dim);
  std::int64_t differing = 0;
  for (std::size_t at = 0; at < wanted.size(); at += width) {
    double error = 0;
    double length = 0;
    for (std::size_t d = at; d < at + width; ++d) {
      const double here = std::abs(got[d] - wanted[d]);
      if (here > error || std::isnan(here)) error = here;  // NaN stays
      length = std::max(length, std::abs(wanted[d]));
    }
    differing += error <= 1e-5 * length + 1e-8 ? 0 : 1;
  }
  EXPECT_LE(differing, by_flips());
}

INSTANTIATE_TEST_SUITE_P(Losses, Large, testing::ValuesIn(all_specs()), test_name);

// One class of nearly all items and one of a single item: as many equal terms as there are items,
// where sums in float lose the most digits, and one negative column among many that are not. Three
// queries belong to a class of `items` copies; a fourth is alone at similarity `near` to them.
template <class S> LossData<S> copies_and_one(std::int64_t items, double near) {
  const std::vector<S> copy = {1, 0};
  const std::vector<S> other = {static_cast<S>(near), static_cast<S>(std::sqrt(1 - near * near))};
  LossData<S> data;
  data.dim = 2;
  data.rows = 4;
  for (int i = 0; i < 3; ++i) {
    data.embeddings.insert(data.embeddings.end(), copy.begin(), copy.end());
  }
  data.embeddings.insert(data.embeddings.end(), other.begin(), other.end());
  data.labels = {0, 0, 0, 1};
  data.memory = items - 3;
  for (std::int64_t i = 0; i < data.memory; ++i) {
    data.memory_embeddings.insert(data.memory_embeddings.end(), copy.begin(), copy.end());
    data.memory_labels.push_back(0);
  }
  return data;
}

class Uneven : public testing::TestWithParam<const char*> {};

TEST_P(Uneven, FloatKeepsTheDigitsOfTheValue) {
  const LossSpec spec = parse_loss(GetParam());
  const Context context(2);
  // In a loss of steep sigmoids the error of products in float32 is multiplied by r or 1 / tau: 42
  // roundings of 6e-8. Under a sanitizer a row's sums do not use 16 lanes: added one by one,
  // `items` equal terms drift by a rounding each.
  constexpr double kWithin = RK_SANITIZED != 0 ? 2e-4 : 4e-6;
  for (const std::int64_t items : {500, 2998}) {
    for (const double near : {0.6, 0.8}) {
      const auto exact = copies_and_one<double>(items, near);
      const auto rounded = copies_and_one<float>(items, near);
      LossFunction<double> in_double(context, spec, exact.shape(), false);
      LossFunction<float> in_float(context, spec, rounded.shape(), false);
      const double expected = in_double(exact).loss, got = in_float(rounded).loss;
      ASSERT_GT(expected, 0);
      EXPECT_NEAR(got, expected, kWithin * expected) << items << " items, " << near;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, Uneven,
                         testing::Values("auc_ba", "pnp_o:tau=0.3", "pnp_iu:tau=1", "pnp_ds:tau=1",
                                         "triplet_ba:soft=1", "triplet_ba:margin=2",
                                         "smooth_ap:tau=1", "sup_ap"),
                         [](const testing::TestParamInfo<const char*>& of) {
                           std::string name = of.param;
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

// A query with more triplets than float counts without gaps (2^24), as many for each positive.
template <class S> LossData<S> two_large_classes() {
  constexpr std::int64_t kPositives = 3000, kNegatives = 8001;
  const std::vector<S> query = {1, 0}, positive = {S(0.8), S(0.6)}, negative = {S(0.6), S(0.8)};
  LossData<S> data;
  data.dim = 2;
  data.rows = 1;
  data.embeddings = query;
  data.labels = {0};
  data.memory = kPositives + kNegatives;
  for (std::int64_t i = 0; i < data.memory; ++i) {
    const std::vector<S>& from = i < kPositives ? positive : negative;
    data.memory_embeddings.insert(data.memory_embeddings.end(), from.begin(), from.end());
    data.memory_labels.push_back(i < kPositives ? 0 : 1);
  }
  return data;
}

TEST(TripletAll, FloatCountsEveryTripletOfAQuery) {
  const LossSpec spec = parse_loss("triplet_ba:margin=1");
  const Context context(1);
  const auto exact = two_large_classes<double>();
  const auto rounded = two_large_classes<float>();
  LossFunction<double> in_double(context, spec, exact.shape(), false);
  LossFunction<float> in_float(context, spec, rounded.shape(), false);
  const double expected = in_double(exact).loss, got = in_float(rounded).loss;
  ASSERT_GT(expected, 0);
  // 8001 equal numbers, added up in at least 8 chains, but in one by clang, which leaves such loops
  // scalar: each addition may round the same way, by up to 2^-25 on average. A count that stops at
  // 2^24 would lose a third.
#if defined(__clang__)
  constexpr double kChains = 1;
#else
  constexpr double kChains = 8;
#endif
  EXPECT_NEAR(got, expected, 8001.0 / kChains * 0x1p-25 * expected);
}

// All positives of one query lie below its one negative and pass it: its rank changes by their
// number, a whole number that float must not lose digits of.
TEST(RamboRecall, FloatCountsEveryPositiveThatPassesANegative) {
  constexpr int kPositives = 5000;
  const LossSpec spec = parse_loss("rambo_recall:lambda=4");
  LossData<float> data;
  data.rows = 2;
  data.dim = 2;
  data.memory = kPositives;
  data.embeddings = {1, 0, 0.9F, std::sqrt(1 - 0.81F)};
  data.labels = {0, 1};
  data.memory_labels.assign(kPositives, 0);
  for (int i = 0; i < kPositives; ++i) {
    const float s = 0.5F + 1e-5F * static_cast<float>(i);
    data.memory_embeddings.insert(data.memory_embeddings.end(), {s, std::sqrt(1 - s * s)});
  }
  const Context context(1);
  LossFunction<float> function(context, spec, data.shape(), false);
  const LossResult<float> result = function(data);
  ASSERT_EQ(result.valid_queries, 1);
  // The negative's gradient is dLoss/ds times the query, which is (1, 0). Added up as multiples of
  // 1 / (n lambda) it was off by 5e-5.
  const double expected = kPositives / ((kPositives + 1) * 4.0);
  EXPECT_NEAR(result.grad[2], expected, 1e-6 * expected);
}

}  // namespace
}  // namespace rk
