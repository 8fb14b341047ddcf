#include "retrieval/evaluate.h"
#include "engine/base/integers.h"

#include "engine/base/error.h"
#include "kernels/score_order.h"
#include "retrieval/class_distances.h"
#include "tests/retrieval/brute_force.h"
#include "tests/retrieval/made_up_sets.h"
#include "tests/retrieval/mixed_cases.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <set>

namespace rk {
namespace {

void expect_near(const char* name, double got, double expected, double tolerance) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << name << " is " << got;
  } else {
    EXPECT_NEAR(got, expected, tolerance * std::max(1.0, std::abs(expected))) << name;
  }
}

constexpr double kRounding = 1e-9;

void expect_all_near(const char* name, const std::vector<double>& got,
                     const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size()) << name;
  for (std::size_t q = 0; q < got.size(); ++q) {
    SCOPED_TRACE(q);
    expect_near(name, got[q], expected[q], kRounding);
  }
}

// Both sum the same exact numbers, in another order: double rounding, far below 1e-9.
void expect_equal_ranks(const Metrics& got, const Metrics& expected) {
  EXPECT_EQ(got.num_queries, expected.num_queries);
  EXPECT_EQ(got.num_queries_valid, expected.num_queries_valid);
  EXPECT_EQ(got.num_pairs_positive, expected.num_pairs_positive);
  EXPECT_EQ(got.num_pairs_negative, expected.num_pairs_negative);
  EXPECT_EQ(got.per_query.first_hit_rank, expected.per_query.first_hit_rank);
  EXPECT_EQ(got.per_query.num_relevant, expected.per_query.num_relevant);
  EXPECT_EQ(got.per_query.num_candidates, expected.per_query.num_candidates);
  for (std::size_t k = 0; k < expected.recall.size(); ++k) {
    expect_near("recall", got.recall[k], expected.recall[k], kRounding);
  }
  expect_near("r_precision", got.r_precision, expected.r_precision, kRounding);
  expect_near("map_at_r", got.map_at_r, expected.map_at_r, kRounding);
  expect_near("map", got.map, expected.map, kRounding);
  expect_all_near("ap", got.per_query.ap, expected.per_query.ap);
  expect_all_near("ap_at_r", got.per_query.ap_at_r, expected.per_query.ap_at_r);
  expect_all_near("r_precision", got.per_query.r_precision, expected.per_query.r_precision);
}

void expect_equal(const Metrics& got, const Metrics& expected, double permitted_auc_error = 0) {
  expect_equal_ranks(got, expected);
  expect_near("roc_auc", got.pairs.roc_auc, expected.pairs.roc_auc,
              kRounding + permitted_auc_error);
  if (!std::isnan(expected.pairs.roc_auc)) {
    EXPECT_LE(std::abs(got.pairs.roc_auc - expected.pairs.roc_auc),
              kRounding + got.pairs.roc_auc_error_bound);
  }
  expect_near("jsd", got.pairs.jsd, expected.pairs.jsd, kRounding);
  expect_near("pos_mean", got.pairs.pos_mean, expected.pairs.pos_mean, kRounding);
  expect_near("pos_var", got.pairs.pos_var, expected.pairs.pos_var, kRounding);
  expect_near("neg_mean", got.pairs.neg_mean, expected.pairs.neg_mean, kRounding);
  expect_near("neg_var", got.pairs.neg_var, expected.pairs.neg_var, kRounding);
  EXPECT_EQ(got.pairs.positive_histogram, expected.pairs.positive_histogram);
  EXPECT_EQ(got.pairs.negative_histogram, expected.pairs.negative_histogram);
  expect_near("dists_intra", got.dists_intra, expected.dists_intra, kRounding);
  expect_near("dists_inter", got.dists_inter, expected.dists_inter, kRounding);
}

// Compares every point with counts at its threshold. A score that equals the threshold but for its
// last bit may count on either side; different scores of these sets are at least 1e-3 apart.
void expect_curve(const std::vector<PairCurvePoint>& curve, reference::PairScores scores) {
  std::sort(scores.positive.begin(), scores.positive.end());
  std::sort(scores.negative.begin(), scores.negative.end());
  if (scores.positive.empty() || scores.negative.empty()) {
    EXPECT_TRUE(curve.empty());
    return;
  }
  const auto share = [](const std::vector<double>& of, double threshold) {
    const auto accepted = of.end() - std::lower_bound(of.begin(), of.end(), threshold);
    return std::pair(static_cast<double>(accepted), static_cast<double>(of.size()));
  };
  const auto agrees = [&](const PairCurvePoint& point, double threshold) {
    const auto [p, positives] = share(scores.positive, threshold);
    const auto [n, negatives] = share(scores.negative, threshold);
    return std::abs(point.recall - p / positives) < kRounding &&
           std::abs(point.false_positive_rate - n / negatives) < kRounding &&
           std::abs(point.precision - p / (p + n)) < kRounding;
  };
  ASSERT_FALSE(curve.empty());
  ASSERT_LE(curve.size(), 402U);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const double t = curve[i].threshold;
    EXPECT_TRUE(agrees(curve[i], t - 1e-6) || agrees(curve[i], t + 1e-6)) << "point " << i;
    if (i > 0) {
      EXPECT_LT(t, curve[i - 1].threshold);
    }
  }
  EXPECT_EQ(curve.back().recall, 1.0);
  EXPECT_EQ(curve.back().false_positive_rate, 1.0);
}

EvaluateOptions detailed() {
  EvaluateOptions options;
  options.per_query = true;
  return options;
}

void check(const EmbeddingSet& queries, const EmbeddingSet* gallery = nullptr, int threads = 2,
           const EvaluateOptions& options = detailed()) {
  const Context context(threads);
  const EmbeddingView view = gallery != nullptr ? gallery->view() : EmbeddingView{};
  const EmbeddingView* other = gallery != nullptr ? &view : nullptr;
  const auto got = evaluate(context, queries.view(), other, options);
  ASSERT_TRUE(got);
  const Metrics expected = reference::brute_force(queries.view(), other, options.recall_at);
  if (options.pair_metrics) {
    expect_equal(*got, expected, permitted_auc_error(options));
    expect_curve(got->pairs.curve, reference::pair_scores(queries.view(), other));
  } else {
    expect_equal_ranks(*got, expected);
    EXPECT_TRUE(got->pairs.positive_histogram.empty() && got->pairs.curve.empty());
  }
}

TEST(Evaluate, MixedClassesAgreeWithBruteForce) {
  const std::uint64_t seed = random_seed();
  for (std::uint64_t index = 0; index < 300 && !testing::Test::HasFailure(); ++index) {
    const MixedCase one = mixed_case(seed, index);
    SCOPED_TRACE(one.what);
    check(one.queries, one.gallery ? &*one.gallery : nullptr, one.threads, one.options);
  }
}

// Rows so long that a strip holds only 256 columns: counts must be collected after each strip.
TEST(Evaluate, MixedClassesAcrossStripsOfColumns) {
  constexpr std::int64_t kDim = 32768;
  CounterRandom random(random_seed(), 1, 0);
  const EmbeddingSet set = mixed::draw_set(random, 600, mixed::kAny, 3, 5, 2, 1.0F);
  EmbeddingSet padded = set;
  padded.dim = kDim;
  padded.embeddings.assign(static_cast<std::size_t>(set.count() * kDim), 0.0F);
  for (std::int64_t i = 0; i < set.count(); ++i) {
    std::copy_n(set.embeddings.begin() + i * set.dim, set.dim,
                padded.embeddings.begin() + i * kDim);
  }
  const auto got = evaluate(Context(3), padded.view(), nullptr, detailed());
  expect_equal(*got, reference::brute_force(set.view(), nullptr, detailed().recall_at));
}

TEST(Evaluate, SizesAroundTheTileEdges) {
  for (const std::int64_t n : {1, 2, 3, 63, 64, 65, 127, 129, 255, 256, 257, 321}) {
    SCOPED_TRACE(n);
    check(grid_set(n, 5, n / 4 + 1));
  }
}

TEST(Evaluate, DepthsAroundThePackingStep) {
  for (const std::int64_t dim : {1, 15, 16, 17, 33}) {
    SCOPED_TRACE(dim);
    check(grid_set(90, dim, 12));
  }
}

TEST(Evaluate, ManyPositivesAreSearchedInsteadOfCompared) {
  check(grid_set(700, 6, 4));   // every class above the 64 positives that are compared one by one
  check(grid_set(500, 6, 12));  // both kinds in one chunk of columns
}

TEST(Evaluate, LongRunsOfPositivesAreSorted) {
  check(grid_set(1600, 6, 3));  // above 512 positives
  check(grid_set(1200, 1, 2));  // most scores equal, zeros of both signs
  const EmbeddingSet gallery = grid_set(1300, 6, 2);
  check(grid_set(70, 6, 3), &gallery);
}

TEST(Evaluate, OneClassHasNoNegatives) {
  EmbeddingSet set = grid_set(300, 4, 5);
  set.labels.assign(set.labels.size(), 9);
  check(set);
}

TEST(Evaluate, EveryRowItsOwnClassHasNoPositives) {
  EmbeddingSet set = grid_set(100, 4, 5);
  for (std::size_t i = 0; i < set.labels.size(); ++i) set.labels[i] = static_cast<std::int64_t>(i);
  check(set);
}

// A thread sums up the distances of 64 classes before they are added to those of others.
TEST(Evaluate, HundredsOfClasses) { check(grid_set(700, 4, 500), nullptr, 1); }

// The mean of three rows of 2^-41 is one, their sum is longer than 1e-12.
TEST(Evaluate, ACentreThatIsTooShortIsLeftOut) {
  constexpr float kTiny = 0x1p-41F;
  EmbeddingSet set;
  set.dim = 2;
  set.embeddings = {1, 0, 0, 1, kTiny, 0, kTiny, 0, kTiny, 0};
  set.labels = {0, 1, 2, 2, 2};
  EXPECT_EQ(class_distances(Context(1), set.view(), nullptr).inter, 1.0);
}

// The mean of the squares, rounded, may be below the square of the mean.
TEST(Evaluate, EqualScoresHaveNoVariance) {
  for (std::int64_t rows = 2; rows < 40; ++rows) {
    EmbeddingSet set = unit_set(2 * rows, 5, 2);
    for (std::int64_t i = 1; i < 2 * rows; ++i) {
      std::copy_n(set.embeddings.begin(), 5, set.embeddings.begin() + i * 5);
    }
    const PairMetrics pairs = evaluate(Context(1), set.view())->pairs;
    for (const double variance : {pairs.pos_var, pairs.neg_var}) {
      EXPECT_TRUE(variance >= 0 && variance < kRounding) << variance;
    }
  }
}

// Scores are 2^20 and a little, exact in float32; their squares lose that little in double.
TEST(Evaluate, ScoresFarFromZeroKeepTheirVariance) {
  for (const std::int64_t classes : {3, 40}) {
    EmbeddingSet set = grid_set(120, 4, classes);
    for (std::int64_t i = 0; i < set.count(); ++i) {
      float* row = set.embeddings.data() + i * set.dim;
      row[0] = 1024;
      for (std::int64_t d = 1; d < set.dim; ++d) row[d] = std::round(2 * row[d]) / 2;
    }
    check(set);
  }
}

TEST(Evaluate, LabelsAreComparedInAllTheirBits) {
  EmbeddingSet set = grid_set(120, 4, 9);
  for (std::int64_t& label : set.labels)
    label = std::numeric_limits<std::int64_t>::max() - (label + 3) % 7;
  check(set);
}

TEST(Evaluate, Gallery) {
  const EmbeddingSet queries = grid_set(150, 6, 30);
  // Has classes that one side lacks, and rows that both sides share.
  const EmbeddingSet gallery = grid_set(330, 6, 22);
  check(queries, &gallery);
  check(gallery, &queries);
}

TEST(Evaluate, CamerasRemoveCandidatesOfTheSameLabel) {
  const EmbeddingSet queries = grid_set(200, 6, 12, 3);
  const EmbeddingSet gallery = grid_set(270, 6, 14, 3, 2);
  check(queries);
  check(queries, &gallery);
}

TEST(Evaluate, PositivesThatDoNotFitAreDoneInGroups) {
  EvaluateOptions options = detailed();
  options.positives_bytes = 4096;
  check(grid_set(400, 6, 9), nullptr, 2, options);
  const EmbeddingSet cameras = grid_set(300, 6, 9, 2);
  check(cameras, nullptr, 2, options);
  const EmbeddingSet gallery = grid_set(330, 6, 12, 2, 3);
  check(cameras, &gallery, 2, options);
}

TEST(Evaluate, SymmetricHalfAndAllOfTheMatrixAgreeToTheBit) {
  const EmbeddingSet set = unit_set(600, 40, 90);
  const Context context(2);
  EvaluateOptions half = detailed(), whole = detailed();
  whole.positives_bytes = 1024;
  const auto a = evaluate(context, set.view(), nullptr, half);
  const auto b = evaluate(context, set.view(), nullptr, whole);
  EXPECT_TRUE(a->symmetric);
  EXPECT_FALSE(b->symmetric);
  EXPECT_EQ(a->per_query.ap, b->per_query.ap);
  EXPECT_EQ(a->per_query.first_hit_rank, b->per_query.first_hit_rank);
}

// Thresholds and counters of the symmetric half are kept for one strip of columns at a time: here
// for 256 of 600, which fit where those of all columns would not.
TEST(Evaluate, OnlyAStripsPositivesAreCountedAtATime) {
  const EmbeddingSet set = unit_set(600, 32768, 100);
  const Context context(2);
  EvaluateOptions tight = detailed();
  const auto whole = evaluate(context, set.view(), nullptr, detailed());
  tight.positives_bytes = static_cast<std::size_t>(whole->num_pairs_positive) * (8 + 8);
  const auto half = evaluate(context, set.view(), nullptr, tight);
  EXPECT_TRUE(half->symmetric);
  EXPECT_EQ(half->per_query.ap, whole->per_query.ap);
  tight.positives_bytes = static_cast<std::size_t>(whole->num_pairs_positive) * (8 + 3);
  EXPECT_FALSE(evaluate(context, set.view(), nullptr, tight)->symmetric);
}

// Half of the matrix is counted down its columns, in counters that each thread has for itself.
TEST(Evaluate, EveryThreadsCountersAreAmongTheBytes) {
  constexpr std::int64_t kRows = 600;
  EmbeddingSet set = unit_set(kRows, 8, 1);
  const auto more_bytes = [&] {
    const auto bytes = [&](int threads) {
      const auto m = evaluate(Context(threads), set.view(), nullptr, detailed());
      EXPECT_TRUE(m->symmetric);
      return static_cast<std::int64_t>(m->bytes_reserved);
    };
    return bytes(3) - bytes(1);
  };
  for (std::int64_t i = 0; i < kRows; ++i) set.labels[at(i)] = i;
  const std::int64_t without_positives = more_bytes();
  for (std::int64_t& label : set.labels) label %= 2;
  constexpr std::int64_t kPositives = kRows * (kRows / 2 - 1);
  EXPECT_GE(more_bytes() - without_positives, 2 * kPositives * std::int64_t{sizeof(std::int32_t)});
}

TEST(Evaluate, TilesOfAllStripsAreAmongTheOperations) {
  constexpr std::int64_t kDim = 32768;  // strips of 256 columns
  const EmbeddingSet queries = unit_set(70, kDim, 7);
  EmbeddingSet gallery = unit_set(600, kDim, 7);
  for (std::int64_t& label : gallery.labels) label += 100;  // no positives to look up first
  const EmbeddingView view = gallery.view();
  const auto m = evaluate(Context(2), queries.view(), &view, detailed());
  EXPECT_EQ(m->gemm_flops, std::int64_t{2 * 3} * 2 * 64 * 256 * kDim);
}

TEST(Evaluate, ThreadsChangeNothing) {
  const EmbeddingSet set = unit_set(700, 48, 60);
  std::vector<Metrics> results;
  for (const int threads : {1, 2, 3}) {
    const Context context(threads);
    results.push_back(*evaluate(context, set.view(), nullptr, detailed()));
  }
  for (const Metrics& m : results) {
    EXPECT_EQ(m.per_query.ap, results[0].per_query.ap);
    EXPECT_EQ(m.recall, results[0].recall);
    EXPECT_EQ(m.map_at_r, results[0].map_at_r);
    EXPECT_EQ(m.pairs.roc_auc, results[0].pairs.roc_auc);
    EXPECT_EQ(m.pairs.jsd, results[0].pairs.jsd);
    EXPECT_EQ(m.pairs.neg_mean, results[0].pairs.neg_mean);
    EXPECT_EQ(m.pairs.neg_var, results[0].pairs.neg_var);
  }
}

// Products of these values are rounded; equal rows must still get equal scores in every tile.
TEST(Evaluate, CollapsedRowsAreAllTies) {
  for (const std::int64_t dim : {3, 100, 513}) {
    EmbeddingSet set = unit_set(600, dim, 75);
    for (std::int64_t i = 1; i < set.count(); ++i) {
      std::copy_n(set.embeddings.begin(), dim, set.embeddings.begin() + i * dim);
    }
    const auto m = evaluate(Context(2), set.view(), nullptr, detailed());
    EXPECT_TRUE(m->ties_exact);
    EXPECT_EQ(m->pairs.roc_auc, 0.5);
    EXPECT_EQ(m->recall_for(1), 0.0);
    for (const double distance : {m->dists_intra, m->dists_inter}) {
      EXPECT_GE(distance, 0);
      EXPECT_LT(distance, kRounding);
    }
    ASSERT_EQ(m->pairs.curve.size(), 1U);  // one score: all pairs are accepted or none
    EXPECT_EQ(m->pairs.curve[0].false_positive_rate, 1.0);
    EXPECT_NEAR(m->pairs.curve[0].precision, 7.0 / 599.0, kRounding);
    EXPECT_EQ(std::count(m->pairs.negative_histogram.begin(), m->pairs.negative_histogram.end(), 0),
              199);
    // With 8 rows a class, the 592 rows of other classes come first.
    for (const std::int64_t rank : m->per_query.first_hit_rank) EXPECT_EQ(rank, 593);
    // From a histogram, all pairs may be won or lost as far as it can tell.
    EvaluateOptions none_ordered;
    none_ordered.most_ordered = 0;
    const auto binned = evaluate(Context(2), set.view(), nullptr, none_ordered);
    EXPECT_EQ(binned->pairs.roc_auc, 0.5);
    EXPECT_EQ(binned->pairs.roc_auc_error_bound, 0.5);
  }
}

TEST(Evaluate, DuplicatesInOtherTilesComeFirst) {
  // Row i, its twin i + n (same class) and a copy i + 2n of another class: s(i, twin) = s(i, copy).
  constexpr std::int64_t kCount = 400, kDim = 129;
  const EmbeddingSet base = unit_set(kCount, kDim, kCount);
  EmbeddingSet set;
  set.dim = kDim;
  for (int part = 0; part < 3; ++part) {
    set.embeddings.insert(set.embeddings.end(), base.embeddings.begin(), base.embeddings.end());
    for (std::int64_t i = 0; i < kCount; ++i) {
      set.labels.push_back(part < 2 ? i : 10000 + (i * 37) % kCount);
    }
  }
  const auto m = evaluate(Context(2), set.view(), nullptr, detailed());
  for (std::int64_t i = 0; i < 2 * kCount; ++i) {
    EXPECT_EQ(m->per_query.first_hit_rank[at(i)], 2) << i;
  }
}

// The AUC does not depend on the length of rows; neither may its bound or the curve's points.
TEST(Evaluate, HistogramAucStaysWithinItsBound) {
  for (const float scale : {1.0F, 30.0F, 0.1F, 1e-3F, 1e-12F}) {
    SCOPED_TRACE(scale);
    EmbeddingSet set = unit_set(500, 24, 60);
    for (float& x : set.embeddings) x *= scale;
    EvaluateOptions none_ordered;
    none_ordered.most_ordered = 0;
    const auto exact = evaluate(Context(2), set.view());
    const auto bounded = evaluate(Context(2), set.view(), nullptr, none_ordered);
    EXPECT_EQ(exact->pairs.roc_auc_error_bound, 0.0);
    EXPECT_GT(bounded->pairs.roc_auc_error_bound, 0.0);
    EXPECT_LT(bounded->pairs.roc_auc_error_bound, 1e-3);
    EXPECT_NEAR(bounded->pairs.roc_auc, exact->pairs.roc_auc, bounded->pairs.roc_auc_error_bound);
    EXPECT_NEAR(bounded->pairs.jsd, exact->pairs.jsd, 1e-12);
    EXPECT_GT(bounded->pairs.curve.size(), 200U);
  }
}

// Exact with more positives than the caches hold, and in groups of queries; from the histogram only
// with more than may be held in order.
TEST(Evaluate, MillionsOfPositivesAreOrdered) {
  EmbeddingSet set = unit_set(2100, 8, 40);
  for (std::size_t i = 0; i < set.labels.size(); ++i) {
    set.labels[i] = i < 2060 ? 0 : static_cast<std::int64_t>(i);
  }
  std::vector<double> positives, negatives;
  for (std::int64_t a = 0; a < 2100; ++a) {
    for (std::int64_t b = 0; b < 2100; ++b) {
      if (a == b) continue;
      double score = 0;
      for (std::int64_t d = 0; d < set.dim; ++d) {
        score += static_cast<double>(set.embeddings[at(a * set.dim + d)]) *
                 static_cast<double>(set.embeddings[at(b * set.dim + d)]);
      }
      (a < 2060 && b < 2060 ? positives : negatives).push_back(score);
    }
  }
  std::sort(positives.begin(), positives.end());
  double wins = 0;
  for (const double s : negatives) {
    const auto [equal, above] = std::equal_range(positives.begin(), positives.end(), s);
    wins += static_cast<double>(positives.end() - above) + static_cast<double>(above - equal) / 2;
  }
  const double auc =
      wins / static_cast<double>(positives.size()) / static_cast<double>(negatives.size());
  EvaluateOptions options;
  const auto whole = evaluate(Context(2), set.view(), nullptr, options);
  const std::int64_t pairs = whole->num_pairs_positive;
  ASSERT_GT(pairs, 4'000'000);
  EXPECT_EQ(whole->pairs.roc_auc_error_bound, 0.0);
  // Scores rounded to float32 may change places with their neighbours.
  EXPECT_NEAR(whole->pairs.roc_auc, auc, 1e-7);
  options.positives_bytes = 1 << 24;
  options.most_ordered = pairs;
  const auto grouped = evaluate(Context(2), set.view(), nullptr, options);
  EXPECT_EQ(grouped->pairs.roc_auc_error_bound, 0.0);
  EXPECT_EQ(grouped->pairs.roc_auc, whole->pairs.roc_auc);
  options.most_ordered = pairs - 1;
  const auto binned = evaluate(Context(2), set.view(), nullptr, options);
  EXPECT_GT(binned->pairs.roc_auc_error_bound, 0.0);
  EXPECT_NEAR(binned->pairs.roc_auc, auc, binned->pairs.roc_auc_error_bound + 1e-7);
}

// The product of a long row with itself, which is no pair, must not widen the bins of all others.
TEST(Evaluate, OneLongRowLeavesBinsForTheOthers) {
  EmbeddingSet set = unit_set(500, 24, 60);
  for (std::int64_t d = 0; d < set.dim; ++d) set.embeddings[at(d)] *= 1000;
  EvaluateOptions none_ordered;
  none_ordered.most_ordered = 0;
  const auto exact = evaluate(Context(2), set.view());
  const auto bounded = evaluate(Context(2), set.view(), nullptr, none_ordered);
  EXPECT_LT(bounded->pairs.roc_auc_error_bound, 0.05);
  EXPECT_NEAR(bounded->pairs.roc_auc, exact->pairs.roc_auc, bounded->pairs.roc_auc_error_bound);
  EXPECT_GT(bounded->pairs.curve.size(), 20U);
  EXPECT_GT(exact->pairs.curve.size(), 20U);
}

TEST(Evaluate, ProgressRisesAndInterruptionEnds) {
  const EmbeddingSet set = grid_set(300, 4, 20);
  EvaluateOptions options;
  double last = 0;
  options.progress = [&](double done) {
    EXPECT_GE(done, last);
    last = done;
  };
  EXPECT_TRUE(evaluate(Context(2), set.view(), nullptr, options));
  EXPECT_EQ(last, 1.0);
  // In strips of 256 columns, progress is that of all strips before.
  const EmbeddingSet wide = unit_set(600, 32768, 100);
  std::set<double> shares;
  options.progress = [&](double done) { shares.insert(done); };
  EXPECT_TRUE(evaluate(Context(2), wide.view(), nullptr, options));
  ASSERT_GE(shares.size(), 4U);
  const double second_strip = *std::prev(shares.end(), 3), last_strip = *std::prev(shares.end(), 2);
  EXPECT_NEAR((1 - second_strip) / (1 - last_strip), 344.0 / 88, 1e-9);
  options.progress = nullptr;
  int polls = 0;
  options.interrupted = [&] { return ++polls == 3; };
  EXPECT_FALSE(evaluate(Context(2), set.view(), nullptr, options));
}

// With large classes, copying the positives' scores is a good part of the work, and the more so if
// they are copied twice, first to be held in order.
TEST(Evaluate, ProgressCountsWhatIsCopied) {
  const EmbeddingSet set = unit_set(640, 4, 2);
  EvaluateOptions options;
  options.positives_bytes = 0;  // ten groups of a tile's rows
  std::vector<double> shares;
  options.progress = [&](double done) {
    if (shares.empty() || done != shares.back()) shares.push_back(done);
  };
  EXPECT_TRUE(evaluate(Context(2), set.view(), nullptr, options));
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  ASSERT_EQ(shares.size(), 1U + 10 + 2 * 10);
  // In tiles of 256 columns, the last cut: 512 hold the first class's 320, 384 the second's.
  constexpr double kCopied = 320 * 512 + 320 * 384, kCounted = 2 * 640 * 640;
  EXPECT_DOUBLE_EQ(shares[10], kCopied / (2 * kCopied + kCounted));
  EXPECT_EQ(shares.back(), 1.0);
}

TEST(Evaluate, RefusesScoresThatOverflow) {
  EmbeddingSet set = grid_set(20, 4, 3);
  for (float& x : set.embeddings) x = 1e30F;
  EXPECT_THROW(evaluate(Context(1), set.view()), InputError);
  set.embeddings[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(evaluate(Context(1), set.view()), InputError);
}

TEST(Evaluate, RefusesScoresThatFloat32CannotHold) {
  EmbeddingSet set = unit_set(60, 4, 3);
  const auto whole = evaluate(Context(1), set.view());
  const auto scaled = [&](float by) {
    EmbeddingSet small = set;
    for (float& x : small.embeddings) x *= by;
    return small;
  };
  // A power of two changes no digit until products leave float32's range.
  EXPECT_EQ(evaluate(Context(1), scaled(0x1p-49F).view())->map, whole->map);
  EXPECT_THROW(evaluate(Context(1), scaled(0x1p-52F).view()), InputError);
  EXPECT_EQ(evaluate(Context(1), scaled(0).view())->recall_for(1), 0);  // all are ties
}

}  // namespace
}  // namespace rk
