// Evaluations through the GPU's code, on the emulated GPU, against those on the CPU.
#include "retrieval/evaluate.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "retrieval/passes/gpu_score_pass.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/retrieval/brute_force.h"
#include "tests/retrieval/made_up_sets.h"
#include "tests/retrieval/mixed_cases.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

struct Both {
  Metrics device, host;
};

Both evaluate_both(const EmbeddingSet& queries, const EmbeddingSet* gallery,
                   EvaluateOptions options = {}) {
  options.per_query = true;
  const Context context(2);
  const Context gpu(2, Device{.cuda = true});
  const EmbeddingView view = gallery != nullptr ? gallery->view() : EmbeddingView{};
  const EmbeddingView* other = gallery != nullptr ? &view : nullptr;
  Both out;
  out.host = *evaluate(context, queries.view(), other, options);
  out.device = *evaluate(gpu, queries.view(), other, options);
  return out;
}

void expect_agree(const PerQuery& got, const PerQuery& expected, double tolerance) {
  const auto agree = [&](const std::vector<double>& a, const std::vector<double>& b) {
    return std::ranges::equal(a, b, [&](double x, double y) {
      return x == y || std::abs(x - y) < tolerance || (std::isnan(x) && std::isnan(y));
    });
  };
  EXPECT_TRUE(agree(got.ap, expected.ap));
  EXPECT_TRUE(agree(got.ap_at_r, expected.ap_at_r));
  EXPECT_TRUE(agree(got.r_precision, expected.r_precision));
  EXPECT_EQ(got.first_hit_rank, expected.first_hit_rank);
  EXPECT_EQ(got.num_relevant, expected.num_relevant);
  EXPECT_EQ(got.num_candidates, expected.num_candidates);
}

void expect_close(double got, double expected, double tolerance, const char* what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << what << " is " << got;
  } else {
    EXPECT_NEAR(got, expected, tolerance * std::max(1.0, std::abs(expected))) << what;
  }
}

// For sets whose scores are exact: both devices see the same numbers, so all counts must be equal.
// Sums are of the same doubles in another order.
void expect_same(const EmbeddingSet& queries, const EmbeddingSet* gallery = nullptr,
                 const EvaluateOptions& options = {}) {
  const auto [device, host] = evaluate_both(queries, gallery, options);
  expect_agree(device.per_query, host.per_query, 0);
  EXPECT_TRUE(device.ties_exact);
  EXPECT_FALSE(device.symmetric);
  EXPECT_EQ(device.recall.size(), host.recall.size());
  for (std::size_t k = 0; k < host.recall.size(); ++k) {
    expect_close(device.recall[k], host.recall[k], 0, "recall");
  }
  expect_close(device.pairs.roc_auc, host.pairs.roc_auc, 1e-12, "AUC");
  expect_close(device.pairs.roc_auc_error_bound, host.pairs.roc_auc_error_bound, 1e-12,
               "its bound");
  expect_close(device.pairs.jsd, host.pairs.jsd, 1e-12, "JSD");
  EXPECT_EQ(device.pairs.positive_histogram, host.pairs.positive_histogram);
  EXPECT_EQ(device.pairs.negative_histogram, host.pairs.negative_histogram);
  ASSERT_EQ(device.pairs.curve.size(), host.pairs.curve.size());
  for (std::size_t i = 0; i < host.pairs.curve.size(); ++i) {
    EXPECT_EQ(device.pairs.curve[i].threshold, host.pairs.curve[i].threshold);
    EXPECT_EQ(device.pairs.curve[i].recall, host.pairs.curve[i].recall);
    EXPECT_EQ(device.pairs.curve[i].precision, host.pairs.curve[i].precision);
  }
  expect_close(device.pairs.neg_mean, host.pairs.neg_mean, 1e-12, "mean");
  expect_close(device.pairs.neg_var, host.pairs.neg_var, 1e-12, "variance");
}

TEST(DeviceEvaluate, CountsWhatTheCpuCounts) {
  for (const std::int64_t n : {1, 2, 63, 65, 300}) {
    SCOPED_TRACE(n);
    expect_same(grid_set(n, 5, n / 4 + 1));
  }
  expect_same(grid_set(700, 6, 4));   // every class is searched
  expect_same(grid_set(500, 6, 12));  // some classes are compared, others searched
  EmbeddingSet one_class = grid_set(300, 4, 5);
  one_class.labels.assign(one_class.labels.size(), 9);
  expect_same(one_class);
}

TEST(DeviceEvaluate, MixedClassesAgreeWithBruteForce) {
  const std::uint64_t seed = random_seed();
  for (std::uint64_t index = 0; index < 300 && !testing::Test::HasFailure(); ++index) {
    MixedCase one = mixed_case(seed, index);
    SCOPED_TRACE(one.what);
    const EmbeddingView view = one.gallery ? one.gallery->view() : EmbeddingView{};
    const EmbeddingView* other = one.gallery ? &view : nullptr;
    const auto got = evaluate(Context(one.threads, Device{.cuda = true}), one.queries.view(), other,
                              one.options);
    ASSERT_TRUE(got);
    const Metrics expected =
        reference::brute_force(one.queries.view(), other, one.options.recall_at);
    expect_agree(got->per_query, expected.per_query, 1e-12);
    if (!one.options.pair_metrics) continue;
    expect_close(got->pairs.roc_auc, expected.pairs.roc_auc,
                 1e-9 + permitted_auc_error(one.options), "AUC");
    expect_close(got->pairs.jsd, expected.pairs.jsd, 1e-9, "JSD");
    expect_close(got->pairs.neg_mean, expected.pairs.neg_mean, 1e-9, "mean");
    expect_close(got->pairs.neg_var, expected.pairs.neg_var, 1e-9, "variance");
  }
}

TEST(DeviceEvaluate, GalleryCamerasAndGroups) {
  const EmbeddingSet queries = grid_set(200, 6, 12, 3);
  const EmbeddingSet gallery = grid_set(270, 6, 14, 3, 2);
  expect_same(queries);
  expect_same(queries, &gallery);
  expect_same(gallery, &queries);
  EvaluateOptions groups;
  groups.positives_bytes = 4096;
  expect_same(queries, nullptr, groups);
  expect_same(queries, &gallery, groups);
  EvaluateOptions ranks_alone;
  ranks_alone.pair_metrics = false;
  expect_same(queries, &gallery, ranks_alone);
}

TEST(DeviceEvaluate, MoreThanOneTileEachWay) { expect_same(grid_set(8300, 3, 900)); }

// Rows are uploaded in pieces of 4 MiB: of 256 rows here.
TEST(DeviceEvaluate, RowsOfSeveralPieces) {
  const EmbeddingSet queries = grid_set(600, 4096, 60);
  const EmbeddingSet gallery = grid_set(300, 4096, 60, 0, 2);
  expect_same(queries);
  expect_same(queries, &gallery);
}

// All tiles have one shape: what is computed beyond the scores must stay small for any number of
// rows.
TEST(DeviceEvaluate, TilesHoldLittleElse) {
  for (const std::int64_t count : {2049, 8193, 8200, 12612, 60502}) {
    const ScoreTileShape tile = device_tile_shape(count, count);
    EXPECT_LE(tile.rows, 2048);
    EXPECT_LE(tile.columns, 8192);
    for (const std::int64_t each : {tile.rows, tile.columns}) {
      const std::int64_t tiles = divide_up(count, each);
      EXPECT_LE(tiles * each, count + 64 * tiles) << count;
    }
  }
  const ScoreTileShape small = device_tile_shape(1, 65);
  EXPECT_EQ(small.rows, 64);
  EXPECT_EQ(small.columns, 128);
}

// Scores beyond [-1, 1] have bins of their own for the AUC.
TEST(DeviceEvaluate, LongRows) {
  EmbeddingSet set = grid_set(400, 6, 40);
  for (float& x : set.embeddings) x *= 32;
  expect_same(set);
}

// Real numbers, whose products round: equal rows must still get equal scores in every tile.
TEST(DeviceEvaluate, CollapsedRowsAreAllTies) {
  EmbeddingSet set = unit_set(600, 100, 75);
  for (std::int64_t i = 1; i < set.count(); ++i) {
    std::copy_n(set.embeddings.begin(), set.dim, set.embeddings.begin() + i * set.dim);
  }
  const Metrics metrics = evaluate_both(set, nullptr).device;
  EXPECT_TRUE(metrics.ties_exact);
  EXPECT_EQ(metrics.pairs.roc_auc, 0.5);
  // 8 a class: 592 others come first.
  for (const std::int64_t rank : metrics.per_query.first_hit_rank) EXPECT_EQ(rank, 593);
}

// What a run keeps free for it is enough, and not far more than enough.
TEST(DeviceEvaluate, TakesNoMoreThanItSays) {
  CounterRandom random(random_seed(), 0, 0);
  const Context gpu(2, Device{.cuda = true});
  for (int round = 0; round < 12; ++round) {
    const std::int64_t classes = 1 + random.below(6), rows = 300 + random.below(900);
    const auto dim = static_cast<std::int64_t>(2 + random.below(60));
    const EmbeddingSet set = unit_set(rows, dim, classes);
    std::int64_t positives = 0;
    for (const std::int64_t one : set.labels) {
      positives += std::ranges::count(set.labels, one) - 1;
    }
    EvaluateOptions options;
    if (random.below(3) == 0) options.positives_bytes = 100000;
    const auto said = static_cast<std::size_t>(gpu_evaluation_bytes(rows, dim, positives, options));
    SCOPED_TRACE(fmt::format("{} rows of {} in {} classes: {} bytes", rows, dim, classes, said));
    const auto within = [&](std::size_t bytes) {
      host_gpu::set_free_bytes(host_gpu::kOfLibraries + bytes);
      try {
        evaluate(gpu, set.view(), nullptr, options);
      } catch (const DeviceError&) {
        return false;
      }
      return true;
    };
    EXPECT_TRUE(within(said));
    EXPECT_FALSE(within(said / 4 * 3));
  }
  host_gpu::set_free_bytes(std::size_t{1} << 46);
}

TEST(DeviceEvaluate, InterruptionEnds) {
  const EmbeddingSet set = grid_set(300, 4, 20);
  const Context gpu(2, Device{.cuda = true});
  EvaluateOptions options;
  int polls = 0;
  options.interrupted = [&] { return ++polls == 3; };
  EXPECT_FALSE(evaluate(gpu, set.view(), nullptr, options));
}

}  // namespace
}  // namespace rk
