// Every registered loss against some 5,000 columns: sums in float over that many, and what a row
// takes in several groups (kernels/rows/histogram_row.h), against the same in double.
#include "tests/losses/loss_test.h"
#include "tests/support/random_seed.h"

#include <set>

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
      wanted.classes = columns;  // a proxy each
      return made_up::data(kind_, wanted, seed);
    }
    wanted.memory = columns - wanted.rows;
    wanted.classes = 300 + random.below(300);
    wanted.identities = true;
    return made_up::data(kind_, wanted, seed);
  }

  // Of the gradient's length. A pair at a hinge or the edge of a bin falls on one side in float and
  // on the other in double: each of 100,000 is worth up to 1e-4, and at most one or two do.
  double grad_tolerance() const {
    static const std::set<std::string> kinked = {"fastap",          "histogram",  "contrastive",
                                                 "triplet_ba",      "triplet_bh", "sup_ap",
                                                 "multi_similarity"};
    return kinked.contains(spec_.entry->name) ? 3e-4 : 1e-5;
  }

  // Rows of the gradient (of scores: elements) that may differ where the loss counts ranks. One
  // that flips between the precisions moves dLoss/dS at the positive and at the one whom it passes
  // by. Positives times columns within 6e-8 of one: 0.1 flips of a few hundred positives, 2 of
  // thousands.
  std::int64_t by_flips() const {
    if (spec_.entry->differentiable) return 0;
    return kind_ == LossKind::kScores ? 2 * 12 : 3 * 2;
  }
};

TEST_P(Large, FloatAgreesWithDouble) {
  const LossData<double> data = batch(random_seed());
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
    EXPECT_LT(distance(got, wanted), grad_tolerance() * norm(wanted) + 1e-7 + 5 * spread.grad);
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

}  // namespace
}  // namespace rk
