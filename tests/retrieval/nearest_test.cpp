#include "retrieval/nearest.h"
#include "engine/base/integers.h"

#include "engine/base/error.h"
#include "retrieval/evaluate.h"
#include "tests/retrieval/made_up_sets.h"
#include "tests/retrieval/mixed_cases.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

namespace rk {
namespace {

using Found = std::vector<std::vector<std::pair<double, std::int64_t>>>;  // (score, row) by query

// The definition, with every score in double.
Found brute_force(const EmbeddingView& queries, const EmbeddingView* gallery, std::int64_t k,
                  Ties ties = Ties::kByRow) {
  const EmbeddingView& candidates = gallery != nullptr ? *gallery : queries;
  const bool cameras = queries.cameras != nullptr && candidates.cameras != nullptr;
  Found out;
  for (std::int64_t q = 0; q < queries.count; ++q) {
    std::vector<std::pair<double, std::int64_t>> all;
    for (std::int64_t g = 0; g < candidates.count; ++g) {
      if (gallery == nullptr && g == q) continue;
      if (cameras && queries.labels[q] == candidates.labels[g] &&
          queries.cameras[q] == candidates.cameras[g]) {
        continue;
      }
      double score = 0;
      for (std::int64_t d = 0; d < queries.dim; ++d) {
        score += static_cast<double>(queries.embeddings[q * queries.dim + d]) *
                 static_cast<double>(candidates.embeddings[g * queries.dim + d]);
      }
      all.emplace_back(score, g);
    }
    const auto is_own = [&](std::int64_t g) {
      return ties == Ties::kOwnClassLast && candidates.labels[g] == queries.labels[q];
    };
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : !is_own(a.second) && is_own(b.second);
    });
    all.resize(std::min(all.size(), static_cast<std::size_t>(k)));
    out.push_back(all);
  }
  return out;
}

Found found_by(int threads, const EmbeddingView& queries, const EmbeddingView* gallery,
               std::int64_t k, Ties ties = Ties::kByRow) {
  const Context context(threads);
  NearestOptions options;
  options.k = k;
  options.ties = ties;
  const std::optional<Neighbours> best = nearest(context, queries, gallery, options);
  Found out(static_cast<std::size_t>(queries.count));
  for (std::int64_t q = 0; best && q < best->queries(); ++q) {
    for (const Neighbour& each : best->of(q)) {
      out[at(q)].emplace_back(each.score, each.row);
    }
  }
  return out;
}

// Scores of mixed cases are exact (mixed_cases.h), so the engine and the definition see the same
// ties.
TEST(Nearest, MixedCasesAgreeWithBruteForce) {
  const std::uint64_t seed = random_seed();
  for (std::uint64_t i = 0; i < 60; ++i) {
    const MixedCase of = mixed_case(seed, i);
    SCOPED_TRACE(of.what);
    CounterRandom random(seed, 1, i);
    const EmbeddingView queries = of.queries.view();
    std::optional<EmbeddingView> gallery;
    if (of.gallery) gallery = of.gallery->view();
    const std::int64_t candidates = gallery ? gallery->count : queries.count;
    // Few neighbours, about as many as there are candidates, or more.
    const std::int64_t k = random.below(2) == 0
                               ? 1 + random.below(12)
                               : std::max(std::int64_t{1}, candidates - 2 + random.below(5));
    SCOPED_TRACE(k);
    const EmbeddingView* in = gallery ? &*gallery : nullptr;
    for (const Ties ties : {Ties::kByRow, Ties::kOwnClassLast}) {
      ASSERT_EQ(found_by(of.threads, queries, in, k, ties), brute_force(queries, in, k, ties));
    }
  }
}

// A strip holds 32 MiB of columns, 2048 rows of 4096 numbers: these candidates fill more than one.
TEST(Nearest, CandidatesInSeveralStripsOfColumns) {
  EmbeddingSet gallery = grid_set(2200, 4096, 5);
  // The last row equals the first, which must come before it, in another strip.
  std::copy_n(gallery.embeddings.begin(), 4096, gallery.embeddings.end() - 4096);
  const EmbeddingSet queries = grid_set(3, 4096, 5, 0, 9);
  const EmbeddingView of = queries.view(), in = gallery.view();
  EXPECT_EQ(found_by(2, of, &in, 2200), brute_force(of, &in, 2200));
  EXPECT_EQ(found_by(2, of, &in, 7), brute_force(of, &in, 7));
}

// Tiles of columns are visited in another order than that of the rows, by which ties go.
TEST(Nearest, TiesAcrossTilesGoByRow) {
  for (const std::int64_t count : {255, 256, 257, 511, 512, 1024, 1281, 1800}) {
    SCOPED_TRACE(count);
    const EmbeddingSet gallery = grid_set(count, 1, 5);  // few scores, each in every tile
    const EmbeddingSet queries = grid_set(20, 1, 5, 0, 9);
    const EmbeddingView of = queries.view(), in = gallery.view();
    for (const Ties ties : {Ties::kByRow, Ties::kOwnClassLast}) {
      for (const std::int64_t k : {std::int64_t{1}, std::int64_t{60}, count}) {
        EXPECT_EQ(found_by(2, of, &in, k, ties), brute_force(of, &in, k, ties));
      }
    }
  }
}

// With Ties::kOwnClassLast the first result must be right exactly for the queries that R@1 counts.
TEST(Nearest, OwnClassLastAgreesWithTheMetrics) {
  const EmbeddingSet set = grid_set(400, 6, 3);  // some ties
  EvaluateOptions options;
  options.per_query = true;
  const auto metrics = evaluate(Context(2), set.view(), nullptr, options);
  int right = 0, tied = 0;
  const Found by_class = found_by(2, set.view(), nullptr, 4, Ties::kOwnClassLast);
  const Found by_row = found_by(2, set.view(), nullptr, 4);
  for (std::size_t q = 0; q < by_class.size(); ++q) {
    const auto is_right = [&](const Found& found) {
      return set.labels[at(found[q][0].second)] == set.labels[q];
    };
    EXPECT_EQ(is_right(by_class), metrics->per_query.first_hit_rank[q] == 1) << q;
    right += is_right(by_class) ? 1 : 0;
    tied += is_right(by_row) && !is_right(by_class) ? 1 : 0;
  }
  EXPECT_GT(right, 0);
  EXPECT_GT(tied, 0);
}

// However many are asked for, there is memory for those that there are.
TEST(Nearest, NoMoreThanThereAre) {
  const EmbeddingSet set = grid_set(5, 3, 2);
  NearestOptions options;
  options.k = std::int64_t{1} << 48;
  const auto found = nearest(Context(1), set.view(), nullptr, options);
  for (std::int64_t q = 0; q < set.count(); ++q) EXPECT_EQ(found->of(q).size(), 4U);
}

TEST(Nearest, ARowAloneFindsNothing) {
  const EmbeddingSet set = grid_set(1, 4, 1);
  EXPECT_EQ(found_by(1, set.view(), nullptr, 3), Found{{}});
}

TEST(Nearest, LabelsAreNotNeededWithoutCameras) {
  const EmbeddingSet set = grid_set(30, 6, 3);
  EmbeddingView bare = set.view();
  bare.labels = nullptr;
  EXPECT_EQ(found_by(2, bare, nullptr, 4), brute_force(set.view(), nullptr, 4));
}

TEST(Nearest, InterruptionEnds) {
  const EmbeddingSet set = grid_set(300, 6, 3);
  const Context context(1);
  NearestOptions options;
  options.interrupted = [] { return true; };
  EXPECT_FALSE(nearest(context, set.view(), nullptr, options));
}

TEST(Nearest, WhatIsNotFiniteIsNamed) {
  EmbeddingSet set = grid_set(30, 6, 3);
  set.embeddings[17 * 6 + 2] = std::numeric_limits<float>::quiet_NaN();
  const EmbeddingSet fine = grid_set(30, 6, 3);
  const EmbeddingView bad = set.view();
  const Context context(1);
  EXPECT_TRUE(holds(message_of<InputError>([&] { nearest(context, bad, nullptr, {}); }),
                    "embeddings: row 17 holds a value that is not finite"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { nearest(context, fine.view(), &bad, {}); }),
                    "gallery: row 17 holds a value that is not finite"));
}

TEST(Nearest, ProgressRisesToTheEndOfTheCallingThread) {
  const EmbeddingSet set = grid_set(3000, 6, 30);
  NearestOptions options;
  std::vector<double> shares;
  options.progress = [&, caller = std::this_thread::get_id()](double share) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    shares.push_back(share);
  };
  EXPECT_TRUE(nearest(Context(2), set.view(), nullptr, options));
  ASSERT_GT(shares.size(), 1U);
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  EXPECT_GE(shares.front(), 0);
  EXPECT_EQ(shares.back(), 1);
}

// Where products leave float32's range, the side whose rows are too long or too short is at fault.
TEST(Nearest, TheSideWhoseProductsLeaveTheRangeIsNamed) {
  const Context context(1);
  const EmbeddingSet fine = grid_set(30, 6, 3);
  const auto said = [&](double factor, bool of_gallery) {
    EmbeddingSet scaled = fine;
    for (float& x : scaled.embeddings) x = static_cast<float>(factor * static_cast<double>(x));
    const EmbeddingView usual = fine.view(), odd = scaled.view();
    const EmbeddingView &queries = of_gallery ? usual : odd, &gallery = of_gallery ? odd : usual;
    return message_of<InputError>([&] { nearest(context, queries, &gallery, {}); });
  };
  EXPECT_TRUE(holds(said(1e39, true), "gallery: inner products up to"));
  EXPECT_TRUE(holds(said(1e39, false), "embeddings: inner products up to"));
  EXPECT_TRUE(holds(said(1e-37, true), "gallery: inner products of at most"));
  EXPECT_TRUE(holds(said(1e-37, false), "embeddings: inner products of at most"));
}

}  // namespace
}  // namespace rk
