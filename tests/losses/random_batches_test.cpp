// Every loss, with a memory or without, on batches drawn anew each run, large enough for what the
// small cases of conformance_test.cpp do not reach: similarities by symmetry, rows handed out by
// work, sparse gradients; classes of one item to most of the batch.
#include "engine/base/error.h"
#include "losses/registry.h"
#include "tests/losses/loss_test.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"

#include <numeric>
#include <stdexcept>

namespace rk {
namespace {

class RandomBatches : public LossTest {
 protected:
  // Classes of similar sizes, or of sizes falling as 1/k, or one of half the batch and singletons.
  LossData<double> batch(std::uint64_t seed, std::int64_t most_rows,
                         std::int64_t least_dim = 1) const {
    CounterRandom random(seed, 1, 0);
    made_up::Wanted wanted;
    wanted.rows = 2 + random.below(most_rows - 1);
    wanted.memory = takes_memory(entry().kind) && random.below(2) == 0 ? random.below(90) : 0;
    wanted.dim = least_dim + random.below(40);
    wanted.image_ids = random.below(3) == 0;
    const std::int64_t kind = random.below(3);
    wanted.classes = 1 + random.below(wanted.rows);
    LossData<double> data = made_up::data(kind_, wanted, seed);
    if (kind_ != LossKind::kEmbeddings || kind == 0 || wanted.image_ids) return data;
    const auto relabel = [&](std::vector<std::int64_t>& labels) {
      for (std::int64_t& label : labels) {
        const double u = random.uniform();
        label = kind == 1 ? static_cast<std::int64_t>(1 / (u + 0.003))
                : u < 0.5 ? -1
                          : random.below(std::int64_t{1} << 40);
      }
    };
    relabel(data.labels);
    relabel(data.memory_labels);
    return data;
  }
  const LossEntry& entry() const { return *spec_.entry; }
};

TEST_P(RandomBatches, AgreeWithThePlainDefinition) {
  for (const std::uint64_t seed : random_seeds(8)) {
    const LossData<double> data = batch(seed, 80);
    const reference::Value value = expected(data);
    const LossResult<double> result = run(data);
    ASSERT_EQ(result.valid_queries, value.valid) << "seed " << seed;
    ASSERT_NEAR(result.loss, value.loss, 1e-9 * std::abs(value.loss) + 1e-12) << "seed " << seed;
  }
}

// The same number of threads gives the same bits. Another number may give others: oneDNN's products
// add up the edges of their tiles in another order than the insides, on processors without AVX-512
// nearly always, and split a matrix times a vector into as many parts as there are threads.
TEST_P(RandomBatches, ThreadsChangeRoundingAlone) {
  for (const std::uint64_t seed : random_seeds(4)) {
    const LossData<double> drawn = batch(seed, 330, 2);
    const LossData<float> data = made_up::as_float(drawn);
    const LossResult<double> exact = run(drawn);
    const Spread spread = rounding_spread(drawn, exact);
    const LossResult<float> alone = run(data);
    const std::vector<double> expected_grad = tangent(drawn, alone.grad);
    const std::vector<double> expected_proxies(alone.grad_proxies.begin(),
                                               alone.grad_proxies.end());
    for (int threads = 1; threads <= 3; ++threads) {
      const Context context(threads);
      LossFunction<float> function(context, spec_, data.shape(), false);
      const LossResult<float> result = function(data), again = function(data);
      ASSERT_EQ(again.loss, result.loss) << "seed " << seed;
      ASSERT_EQ(again.grad, result.grad) << "seed " << seed;
      ASSERT_EQ(again.grad_proxies, result.grad_proxies) << "seed " << seed;
      // The tolerance of float against double (conformance_test.cpp), once for each of the two
      // results.
      ASSERT_NEAR(result.loss, alone.loss,
                  2 * (1e-5 * std::abs(exact.loss) + 1e-7 + 5 * spread.loss))
          << "seed " << seed;
      if (!spec_.entry->differentiable) continue;  // a rank may flip
      expect_within(
          distance(tangent(drawn, result.grad), expected_grad),
          [&](const Spread& of) { return 2 * (1e-5 * norm(expected_grad) + 1e-7 + 5 * of.grad); },
          drawn, exact, spread, seed);
      if (HasFatalFailure()) return;
      ASSERT_LT(relative(result.grad_proxies, expected_proxies), 2e-5) << "seed " << seed;
    }
  }
}

// Scores of few values, exact in float: positives of equal score move by steps whose differences
// are far below the rounding of the moved scores, yet only these differences decide how their ranks
// change.
TEST(RamboTies, MoveInFloatAsInDouble) {
  const Context context(1);
  // lambda is not a round number, so that no positive lands on the value of another score.
  for (const char* text :
       {"rambo_ap:lambda=0.2137,margin=0.0517", "rambo_ap:lambda=3.917,margin=0.0313",
        "rambo_recall:lambda=0.2137,margin=0.0517", "rambo_map:lambda=0.5171,margin=0.0913",
        "rambo_apc:lambda=0.5171,margin=0.1213"}) {
    const LossSpec spec = parse_loss(text);
    const LossKind kind = spec.entry->kind;
    for (const std::uint64_t seed : random_seeds(40)) {
      CounterRandom random(seed, 7, 0);
      const made_up::Wanted wanted{.rows = 2 + random.below(140),
                                   .memory = takes_memory(kind) ? random.below(40) : 0,
                                   .classes = 1 + random.below(5)};
      const LossData<double> data = made_up::tied(kind, wanted, seed);
      const reference::Value expected = reference::reference_of(spec).value(data, spec.values);
      LossFunction<float> function(context, spec, data.shape(), false);
      const LossResult<float> result = function(made_up::as_float(data));
      ASSERT_LT(relative(result.grad, expected.grad), 1e-5) << text << ", seed " << seed;
    }
  }
}

// Rankings so long that neighbouring positives round to the same moved score, the later of them
// ahead.
TEST(RamboTies, MoveInFloatAsInDoubleInLongRankings) {
  const Context context(2);
  const LossSpec spec = parse_loss("rambo_map:lambda=0.5171,margin=0.0913");
  for (const std::uint64_t seed : random_seeds(4)) {
    CounterRandom random(seed, 7, 0);
    const LossData<double> data =
        made_up::tied(spec.entry->kind, {.rows = 5000 + random.below(2000), .classes = 2}, seed);
    const reference::Value expected = reference::reference_of(spec).value(data, spec.values);
    LossFunction<float> function(context, spec, data.shape(), false);
    const LossResult<float> result = function(made_up::as_float(data));
    ASSERT_LT(relative(result.grad, expected.grad), 1e-5) << "seed " << seed;
  }
}

// Mining leaves no pair of a query whose hardest negative is far below its hardest positive: its
// loss and gradient must be 0.
TEST(MultiSimilarity, QueriesThatNothingIsLeftOfAreZero) {
  const Context context(1);
  const LossSpec spec = parse_loss("multi_similarity:beta=250,base=0");
  LossData<double> data;
  data.rows = 4;
  data.dim = 2;
  data.embeddings = {1, 0, 1, 0, 0.8, 0.6, 0.8, 0.6};
  data.labels = {0, 0, 1, 1};
  LossFunction<float> function(context, spec, data.shape(), false);
  const LossResult<float> result = function(made_up::as_float(data));
  EXPECT_EQ(result.loss, 0);
  for (const float g : result.grad) EXPECT_EQ(g, 0);
}

// In float 1 - 0.1 is below these negatives, which + 0.1 are 1: whether any pair is left, and
// which, must be the same question.
TEST(MultiSimilarity, PairsThatMiningLeavesByARoundingAreWhole) {
  const Context context(1);
  const LossSpec spec = parse_loss("multi_similarity:beta=300");
  constexpr double kScore = 0.90000004F;
  const double other = std::sqrt(1 - kScore * kScore);
  LossData<double> data;
  data.rows = 4;
  data.dim = 2;
  data.embeddings = {1, 0, 1, 0, kScore, other, kScore, other};
  data.labels = {0, 0, 1, 1};
  LossFunction<float> function(context, spec, data.shape(), false);
  const LossResult<float> result = function(made_up::as_float(data));
  EXPECT_NEAR(result.loss, reference::reference_of(spec).value(data, spec.values).loss, 1e-4);
  for (const float g : result.grad) EXPECT_TRUE(std::isfinite(g)) << g;
}

// --normalize: batch rows whose squares overflow float, memory rows whose squares underflow.
TEST(NormalizedLoss, TakesRowsAndMemoryOfAnyLength) {
  const Context context(1);
  const LossSpec spec = parse_loss("smooth_ap:tau=0.1");
  LossData<double> unit =
      made_up::data(LossKind::kEmbeddings, {.rows = 12, .memory = 6, .dim = 7}, random_seed());
  LossData<double> longer = unit;
  for (double& x : longer.embeddings) x *= 1e25;
  for (double& x : longer.memory_embeddings) x *= 1e-25;
  LossFunction<float> function(context, spec, unit.shape(), true);
  const double expected = function(made_up::as_float(unit)).loss;
  EXPECT_NEAR(function(made_up::as_float(longer)).loss, expected, 1e-5);
}

// Rows and memory rows of lengths 0.5, 1 and 3: the gradient must hold the derivative of the
// normalisation, so it is orthogonal to its row and divided by the row's length.
TEST(NormalizedLoss, GradientIsThatOfTheRowsAsGiven) {
  const std::uint64_t seed = random_seed();
  const Context context(1);
  constexpr std::array kLengths{0.5, 1.0, 3.0};
  for (const char* text : {"smooth_ap:tau=0.1", "nsl"}) {
    const LossSpec spec = parse_loss(text);
    const LossKind kind = spec.entry->kind;
    LossData<double> data = made_up::data(
        kind, {.rows = 12, .memory = takes_memory(kind) ? 6 : 0, .dim = 7, .classes = 4}, seed);
    const auto scale = [&](std::vector<double>& rows) {
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] *= kLengths[i / 7 % kLengths.size()];
    };
    scale(data.embeddings);
    scale(data.memory_embeddings);
    LossFunction<double> function(context, spec, data.shape(), true);
    // The step leaves both the rounding of the differences and their truncation below 1e-7.
    EXPECT_LT(check_differences(function, data, seed, 20, 2e-6).worst, 1e-6) << text;

    const std::vector<double> grad = function(data).grad;
    ASSERT_GT(norm(grad), 1e-6) << text;
    for (std::int64_t row = 0; row < data.rows; ++row) {
      const std::ptrdiff_t at = row * data.dim;
      const double along = std::inner_product(grad.begin() + at, grad.begin() + at + data.dim,
                                              data.embeddings.begin() + at, 0.0);
      EXPECT_NEAR(along, 0, 1e-12 * norm(grad)) << text << ", row " << row;  // rounding of 7 sums
    }
  }
}

TEST(NormalizedLoss, RowsWithoutADirectionAreRefused) {
  const Context context(1);
  const LossData<double> data =
      made_up::data(LossKind::kEmbeddings, {.rows = 9, .memory = 5, .dim = 7}, random_seed());
  LossFunction<double> function(context, parse_loss("fastap"), data.shape(), true);
  const auto refusal = [&](std::vector<double> LossData<double>::*rows, std::ptrdiff_t row) {
    LossData<double> zero = data;
    std::fill_n((zero.*rows).begin() + row * data.dim, data.dim, 0.0);
    return message_of<InputError>([&] { function(zero); });
  };
  EXPECT_EQ(refusal(&LossData<double>::embeddings, 4),
            "embeddings: row 4 is zero and has no direction; leave out --normalize");
  EXPECT_EQ(refusal(&LossData<double>::memory_embeddings, 2),
            "memory_embeddings: row 2 is zero and has no direction; leave out --normalize");
}

TEST(NormalizedLoss, RowsTooShortForTheirGradientAreRefused) {
  const Context context(1);
  LossData<double> data =
      made_up::data(LossKind::kEmbeddings, {.rows = 9, .dim = 7, .classes = 3}, random_seed());
  for (double& x : data.embeddings) x *= 1e-42;
  // Wherever rows lie, each class has a gradient: with a temperature of 1 no pair is saturated.
  for (std::size_t i = 0; i < 9; ++i) data.labels[i] = static_cast<std::int64_t>(i % 3);
  LossFunction<float> function(context, parse_loss("smooth_ap:tau=1"), data.shape(), true);
  const std::string why = message_of<InputError>([&] { function(made_up::as_float(data)); });
  EXPECT_TRUE(holds(why, "for which its gradient is beyond the largest number; scale the rows up"));
}

// A step of the same size would turn short rows around.
TEST(NormalizedLoss, RowsOfEveryLengthAreMovedAlike) {
  const std::uint64_t seed = random_seed();
  const Context context(1);
  for (const double length : {1e-9, 1e-5, 1e6}) {
    LossData<double> data =
        made_up::data(LossKind::kEmbeddings, {.rows = 12, .dim = 7, .classes = 4}, seed);
    for (double& x : data.embeddings) x *= length;
    LossFunction<double> function(context, parse_loss("smooth_ap:tau=0.1"), data.shape(), true);
    EXPECT_LT(check_differences(function, data, seed, 20, 2e-6).worst, 1e-6) << length;
  }
}

// Differences of a saturated loss are the rounding of two equal numbers. check_differences must not
// count that as an error of a gradient near 0.
TEST(NormalizedLoss, DifferencesOfASaturatedLossAreNoError) {
  const Context context(1);
  const LossSpec spec = parse_loss("wilcoxon_bh:r=10000");
  const LossData<double> data =
      made_up::data(LossKind::kEmbeddings, {.rows = 24, .dim = 7, .classes = 8}, random_seed());
  LossFunction<double> function(context, spec, data.shape(), false);
  // The step times r is a thousandth of a sigmoid's width, for any pair that is not saturated.
  EXPECT_LT(check_differences(function, data, 0, 20, 1e-7).worst, 1e-3);
  // A real difference still counts as an error: here the step is too large.
  const LossSpec steep = parse_loss("smooth_ap:tau=0.1");
  LossFunction<double> smooth(context, steep, data.shape(), false);
  EXPECT_LT(check_differences(smooth, data, 0, 20, 1e-5).worst, 1e-6);
  EXPECT_GT(check_differences(smooth, data, 0, 20, 0.1).worst, 1e-3) << "too large a step";
}

TEST(ProxyLosses, TooShortAProxyIsRefused) {
  const Context context(1);
  for (const char* text : {"nsl", "proxy_anchor"}) {
    LossData<float> data = made_up::as_float(
        made_up::data(LossKind::kProxies, {.rows = 9, .dim = 5, .classes = 4}, random_seed()));
    LossFunction<float> function(context, parse_loss(text), data.shape(), false);
    const auto scaled = [&](float by) {
      LossData<float> short_one = data;
      for (std::int64_t d = 0; d < data.dim; ++d) {
        short_one.proxies[static_cast<std::size_t>(2 * data.dim + d)] *= by;
      }
      return short_one;
    };
    for (const float g : function(scaled(1e-25F)).grad_proxies) ASSERT_TRUE(std::isfinite(g));
    EXPECT_THROW(function(scaled(1e-39F)), InputError) << text;
  }
}

TEST(ProxyLosses, LabelsWithoutAProxyAreRefused) {
  const Context context(1);
  for (const LossEntry& entry : loss_registry()) {
    if (entry.kind != LossKind::kProxies) continue;
    LossData<float> data = made_up::as_float(
        made_up::data(LossKind::kProxies, {.rows = 9, .dim = 5, .classes = 4}, random_seed()));
    LossFunction<float> function(context, parse_loss(entry.name), data.shape(), false);
    for (const std::int64_t label : {0, 1, 2, 3}) {
      data.labels[7] = label;
      EXPECT_NO_THROW(function(data)) << entry.name << ", label " << label;
    }
    for (const std::int64_t label : {-1, 4}) {
      data.labels[7] = label;
      EXPECT_EQ(message_of<InputError>([&] { function(data); }),
                fmt::format("labels: row 7 holds {}, but there are 4 proxies; number classes "
                            "from 0",
                            label))
          << entry.name;
    }
  }
}

TEST(ProxyLosses, OfNoRowsAreZero) {
  const Context context(1);
  for (const char* text : {"nsl", "proxy_anchor"}) {
    for (const std::int64_t classes : {6, 0}) {
      const LossSpec spec = parse_loss(text);
      LossData<float> data;
      data.dim = 6;
      data.classes = classes;
      data.proxies.assign(static_cast<std::size_t>(6 * classes), 0.5F);
      LossFunction<float> function(context, spec, data.shape(), false);
      const LossResult<float> result = function(data);
      EXPECT_EQ(result.loss, 0) << text;
      EXPECT_EQ(result.valid_queries, 0) << text;
    }
  }
}

TEST(ProxyLosses, ABatchOtherThanPlannedIsRefused) {
  const Context context(1);
  for (const char* text : {"nsl", "proxy_anchor"}) {
    const auto runs = [&](const made_up::Wanted& wanted) {
      const auto loss = make_loss<double>(text);
      loss->allocate(context, {.rows = 9, .dim = 5, .classes = 4});
      const LossData<double> data = made_up::data(LossKind::kProxies, wanted, random_seed());
      std::vector<double> grad(data.embeddings.size()), grad_proxies(data.proxies.size());
      LossOutput<double> output;
      output.grad = grad.data();
      output.grad_proxies = grad_proxies.data();
      loss->run(context, data.input(), output);
    };
    EXPECT_NO_THROW(runs({.rows = 8, .dim = 5, .classes = 3})) << text;
    EXPECT_THROW(runs({.rows = 10, .dim = 5, .classes = 4}), std::invalid_argument) << text;
    EXPECT_THROW(runs({.rows = 9, .dim = 5, .classes = 5}), std::invalid_argument) << text;
    EXPECT_THROW(runs({.rows = 9, .dim = 6, .classes = 4}), std::invalid_argument) << text;
    EXPECT_THROW(runs({.rows = 9, .dim = 4, .classes = 4}), std::invalid_argument) << text;
  }
}

// Thresholds lie from -1 to 1, both included.
TEST(AucThresholds, AreThoseOfStepsThatDivideTheRange) {
  EXPECT_NO_THROW(parse_loss("auc_ba:ds=0.04"));
  const auto makes = [](const char* text) { make_loss<float>(parse_loss(text)); };
  EXPECT_NO_THROW(makes("auc_ba:ds=0.0666667"));
  EXPECT_THROW(makes("auc_ba:ds=0.3"), UsageError);
  EXPECT_THROW(makes("auc_bh:ds=0.03"), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Losses, RandomBatches, testing::ValuesIn(all_specs()), test_name);

}  // namespace
}  // namespace rk
