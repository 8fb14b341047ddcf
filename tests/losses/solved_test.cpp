// Losses of nearly solved batches: those that are 1 - a mean of ratios are below the rounding of 1
// there, and must neither lose their digits nor fall below 0.
#include "engine/base/integers.h"
#include "tests/losses/loss_test.h"
#include "tests/support/random_seed.h"

namespace rk {
namespace {

class Solved : public LossTest {
 protected:
  // Classes of any size whose items lie close together. Coordinates are multiples of 2^-8: every
  // similarity, and 100 times it, is exact in float and in any order of summation, so that float
  // and double rank the same numbers.
  static LossData<double> batch(std::uint64_t seed) {
    constexpr std::int64_t kDim = 64;
    CounterRandom random(seed, 1, 0);
    LossData<double> out;
    out.rows = 40 + random.below(60);
    out.memory = random.below(3) == 0 ? random.below(60) : 0;
    out.dim = kDim;
    const std::int64_t classes = 2 + random.below(26);
    const double spread = random.uniform(0.02, 0.15);
    std::vector<double> centres;
    for (std::int64_t i = 0; i < classes * kDim; ++i) {
      centres.push_back(random.normal() / std::sqrt(static_cast<double>(kDim)));
    }
    for (std::int64_t i = 0; i < out.rows + out.memory; ++i) {
      const std::int64_t label = random.below(classes);
      auto& rows = i < out.rows ? out.embeddings : out.memory_embeddings;
      double square = 0;
      for (std::int64_t d = 0; d < kDim; ++d) {
        rows.push_back(centres[at(label * kDim + d)] + spread * random.normal());
        square += rows.back() * rows.back();
      }
      for (auto x = rows.end() - kDim; x != rows.end(); ++x) {
        *x = std::round(*x / std::sqrt(square) * 256) / 256;
      }
      (i < out.rows ? out.labels : out.memory_labels).push_back(label);
    }
    return out;
  }

  // Relative error of the loss in float. In auc_bh's two factors and in wilcoxon_bh, the exponent
  // is a steepness of 42 times a score and a threshold, each off by 6e-8.
  double digits() const { return spec_.entry->name.ends_with("_bh") ? 5e-5 : 1e-5; }
  // Losses of histograms and of ranks change in steps wider than 1e-9.
  bool reaches_any_value() const {
    return spec_.values.text().contains("tau") || spec_.entry->name.ends_with("_bh");
  }
};

TEST_P(Solved, ValuesKeepTheirDigitsAndAreNeverNegative) {
  int compared = 0;
  int tiny = 0;
  for (const std::uint64_t seed : random_seeds(80)) {
    const LossData<double> data = batch(seed);
    const double value = expected(data).loss;
    const double exact = run(data).loss;
    const double rounded = run(made_up::as_float(data)).loss;
    EXPECT_GE(exact, 0) << "seed " << seed;
    EXPECT_GE(rounded, 0) << "seed " << seed;
    if (value < 1e-15) {  // a soft count on the edge of its bin
      EXPECT_LT(exact, 2e-15) << "seed " << seed;
      EXPECT_LT(rounded, 2e-15) << "seed " << seed;
      continue;
    }
    ++compared;
    tiny += value < 1e-9 ? 1 : 0;
    EXPECT_NEAR(exact, value, 1e-9 * value) << "seed " << seed;
    EXPECT_NEAR(rounded, value, digits() * value) << "seed " << seed;
  }
  EXPECT_GT(compared, 10);
  EXPECT_TRUE(tiny > 0 || !reaches_any_value()) << tiny;
}

INSTANTIATE_TEST_SUITE_P(Losses, Solved,
                         testing::Values("smooth_ap", "smooth_ap:compat=official",
                                         "sup_ap:lambda=0", "fastap", "fastap:bins=23", "rambo_ap",
                                         "auc_bh", "wilcoxon_bh"),
                         test_name);

// The gradient for two classes of two equal items each, at similarity `score`: pnp_iu's n is 2
// exp(100 (score - 1)), and dL/ds of a negative pair is 12.5 n^2.
std::vector<float> gradient_of_two_classes(float score) {
  const float other = std::sqrt(1 - score * score);
  const std::vector<float> embeddings = {1, 0, 1, 0, score, other, score, other};
  const std::vector<std::int64_t> labels = {0, 0, 1, 1};
  LossInput<float> input;
  input.rows = 4;
  input.dim = 2;
  input.embeddings = embeddings.data();
  input.labels = labels.data();
  std::vector<float> grad(embeddings.size(), std::nanf(""));
  LossOutput<float> output;
  output.grad = grad.data();
  const Context context(1);
  const auto loss = make_loss<float>("pnp_iu");
  loss->allocate(context, {.rows = 4, .memory = 0, .dim = 2});
  loss->run(context, input, output);
  return grad;
}

// dL/dS of 7e-33 must become 0: each of its products is denormal and would cost a processor a
// hundred cycles. 4e-25 must not.
TEST(SolvedGradient, NumbersWhoseProductsAreDenormalAreZero) {
  for (const float number : gradient_of_two_classes(0.61F)) EXPECT_EQ(number, 0);
  for (const float number : gradient_of_two_classes(0.7F)) {
    EXPECT_GT(std::abs(number), 1e-27F);
    EXPECT_LT(std::abs(number), 1e-22F);
  }
}

}  // namespace
}  // namespace rk
