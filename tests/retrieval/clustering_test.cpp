#include "retrieval/statistics/clustering.h"
#include "engine/base/integers.h"
#include "retrieval/statistics/mutual_information.h"

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "tests/retrieval/made_up_sets.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace rk {
namespace {

using Vector = std::vector<double>;

std::vector<Vector> rows_of(const EmbeddingSet& set) {
  std::vector<Vector> rows;
  for (std::int64_t i = 0; i < set.count(); ++i) {
    rows.emplace_back(set.embeddings.begin() + i * set.dim,
                      set.embeddings.begin() + (i + 1) * set.dim);
  }
  return rows;
}

double apart(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

struct Plain {
  std::vector<std::int64_t> cluster;
  std::int64_t empty = 0;
  int iterations = 0;
  double closest_call = std::numeric_limits<double>::infinity();  // least lead of a nearest centre
};

// Lloyd's iterations in double, comparing every row with every centre each time.
Plain plain_k_means(const std::vector<Vector>& rows, const std::vector<std::int64_t>& start,
                    int iterations) {
  std::vector<Vector> centres;
  for (const std::int64_t row : start) centres.push_back(rows[at(row)]);
  Plain out;
  out.cluster.resize(rows.size());
  for (int iteration = 0; iteration <= iterations; ++iteration) {
    out.iterations = iteration;
    const std::vector<std::int64_t> before = out.cluster;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Vector distances;
      for (const Vector& centre : centres) distances.push_back(apart(rows[i], centre));
      const auto best = std::min_element(distances.begin(), distances.end()) - distances.begin();
      const Vector& nearest = centres[at(best)];
      for (std::size_t c = 0; c < centres.size(); ++c) {
        const double further = distances[c] - distances[at(best)];
        if (static_cast<std::int64_t>(c) == best || further >= out.closest_call) continue;
        if (centres[c] != nearest) out.closest_call = further;
      }
      out.cluster[i] = best;
    }
    if (iteration > 0 && out.cluster == before) break;
    if (iteration == iterations) break;
    for (std::size_t c = 0; c < centres.size(); ++c) {
      Vector sum(centres[c].size(), 0.0);
      double count = 0;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (out.cluster[i] != static_cast<std::int64_t>(c)) continue;
        count += 1;
        for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += rows[i][d];
      }
      if (count == 0) continue;
      // The engine keeps centres in float32.
      for (std::size_t d = 0; d < sum.size(); ++d) {
        centres[c][d] = static_cast<double>(static_cast<float>(sum[d] / count));
      }
    }
  }
  for (std::size_t c = 0; c < centres.size(); ++c) {
    out.empty += std::count(out.cluster.begin(), out.cluster.end(), c) == 0 ? 1 : 0;
  }
  return out;
}

// Unless some row is nearly as near to a second centre, float32 and double must assign alike:
// lengths are about 1 to 3, so products are off by less than 1e-5. Sets with few distinct values
// have equal rows, hence equal centres, and clusters that stay empty.
TEST(Clustering, DrawnCasesAgreeWithPlainKMeans) {
  CounterRandom random(random_seed(), 0, 0);
  int compared = 0, with_empty = 0;
  for (int i = 0; i < 50; ++i) {
    SCOPED_TRACE(i);
    const std::int64_t n = 2 + random.below(200), dim = 1 + random.below(12);
    EmbeddingSet set = unit_set(n, dim, 1 + random.below(40));
    if (random.below(3) == 0) set = grid_set(n, 1 + random.below(2), 5, 0, random.next());
    ClusteringOptions options;
    options.clusters = 1 + random.below(std::min<std::int64_t>(n, 60));
    options.iterations = 1 + static_cast<int>(random.below(25));
    options.seed = random.next();
    const Context context(1 + static_cast<int>(random.below(3)));
    // Half of the cases split the set into queries and gallery.
    EmbeddingView first = set.view(), second = set.view();
    const std::int64_t cut = 1 + random.below(n - 1);
    const bool parts = random.below(2) == 0;
    if (parts) {
      first.count = cut;
      second.count = n - cut;
      second.embeddings += cut * set.dim;
      second.labels += cut;
    }
    const EmbeddingView* more = parts ? &second : nullptr;
    const auto got = k_means(context, first, more, options);
    ASSERT_EQ(got->start.size(), static_cast<std::size_t>(options.clusters));
    const Plain expected = plain_k_means(rows_of(set), got->start, options.iterations);
    EXPECT_EQ(got->cluster.size(), static_cast<std::size_t>(n));
    EXPECT_LE(got->iterations, options.iterations);
    const std::set<std::int64_t> used(got->cluster.begin(), got->cluster.end());
    EXPECT_EQ(got->empty, options.clusters - static_cast<std::int64_t>(used.size()));
    if (expected.closest_call < 1e-4) continue;
    ++compared;
    with_empty += expected.empty > 0 ? 1 : 0;
    EXPECT_EQ(got->cluster, expected.cluster);
    EXPECT_EQ(got->empty, expected.empty);
    EXPECT_EQ(got->iterations, expected.iterations);
  }
  EXPECT_GT(compared, 8);
  EXPECT_GT(with_empty, 0);
}

// More clusters than a tile has columns, and rows in several tiles. Passes after the first compare
// rows with the moved centres only.
TEST(Clustering, ManyClustersAgreeWithPlainKMeans) {
  const EmbeddingSet set = unit_set(900, 24, 300);
  ClusteringOptions options;
  options.clusters = 300;
  options.seed = random_seed();
  const auto got = k_means(Context(2), set.view(), nullptr, options);
  const Plain expected = plain_k_means(rows_of(set), got->start, options.iterations);
  const auto same = std::inner_product(
      got->cluster.begin(), got->cluster.end(), expected.cluster.begin(), 0, std::plus<>(),
      [](std::int64_t a, std::int64_t b) { return a == b ? 1 : 0; });
  EXPECT_GE(same, 880);  // close calls may go either way and take a few rows with them
}

TEST(Clustering, ThreadsChangeNothing) {
  const EmbeddingSet set = unit_set(700, 20, 90);
  ClusteringOptions options;
  options.clusters = 90;
  const auto one = k_means(Context(1), set.view(), nullptr, options);
  const auto three = k_means(Context(3), set.view(), nullptr, options);
  EXPECT_EQ(one->cluster, three->cluster);
}

// k-means++ draws the first row uniformly and each further one by its squared distance from the
// nearest row drawn before; the fifth is the first behind two that were proposed together. Compares
// how often each sequence of five rows comes in 20,000 draws with its probability p. A count's
// standard deviation is sqrt(20000 p (1 - p)); if large, a count is more than six of them off once
// in 1e8. Counts with a mean below one (seven came where 0.8 were due, once in 1e5) need another
// eight to be as rare.
TEST(Clustering, StartsFollowTheChancesOfKMeansPlusPlus) {
  EmbeddingSet set;
  set.dim = 2;
  set.embeddings = {0, 0, 1, 0, 1.5F, 0.5F, 4, 1, 4, 1, 2, 3};
  set.labels.assign(6, 0);
  const auto rows = rows_of(set);
  const std::uint64_t seed = random_seed();
  constexpr int kDraws = 20000;
  std::map<std::vector<std::int64_t>, int> seen;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    ClusteringOptions options;
    options.clusters = 5;
    options.iterations = 1;
    options.seed = seed + i;
    ++seen[k_means(Context(1), set.view(), nullptr, options)->start];
  }
  const auto chance = [&](const std::vector<std::int64_t>& drawn) {
    Vector nearest(rows.size(), 1.0);
    double p = 1;
    for (std::size_t k = 0; k < drawn.size(); ++k) {
      p *= nearest[at(drawn[k])] / std::accumulate(nearest.begin(), nearest.end(), 0.0);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const double distance = apart(rows[r], rows[at(drawn[k])]);
        nearest[r] = k == 0 ? distance : std::min(nearest[r], distance);
      }
    }
    return p;
  };
  int all = 0;
  for (int code = 0; code < 6 * 6 * 6 * 6 * 6; ++code) {
    std::vector<std::int64_t> drawn;
    for (int rest = code; drawn.size() < 5; rest /= 6) drawn.push_back(rest % 6);
    const double p = chance(drawn);
    const int count = seen.contains(drawn) ? seen[drawn] : 0;
    all += count;
    EXPECT_NEAR(count, kDraws * p, 6 * std::sqrt(kDraws * p * (1 - p)) + (p > 0 ? 8 : 0)) << code;
  }
  EXPECT_EQ(all, kDraws);
}

// Of two values all are drawn at once, and the third row is any of the six, those drawn included.
// The distance of equal rows, computed from products in float32, may be above 0. A third of the
// draws repeat a row: of 200, 67 on average with a standard deviation of 6.7.
TEST(Clustering, RowsThatEqualOneDrawnAreNoFurtherFromIt) {
  const std::uint64_t seed = random_seed();
  for (std::int64_t dim = 20; dim < 28; ++dim) {
    SCOPED_TRACE(dim);
    EmbeddingSet set = unit_set(6, dim, 2);
    for (std::int64_t i = 2; i < 6; ++i) {
      std::copy_n(set.embeddings.begin() + i % 2 * dim, dim, set.embeddings.begin() + i * dim);
    }
    int repeats = 0;
    for (std::uint64_t i = 0; i < 200; ++i) {
      ClusteringOptions options;
      options.clusters = 3;
      options.iterations = 1;
      options.seed = seed + i;
      const auto start = k_means(Context(1), set.view(), nullptr, options)->start;
      repeats += std::set<std::int64_t>(start.begin(), start.end()).size() < 3 ? 1 : 0;
    }
    EXPECT_NEAR(repeats, 200 / 3.0, 6 * 6.7);
  }
}

TEST(Clustering, ProgressRisesToItsEnd) {
  const EmbeddingSet set = unit_set(300, 8, 30);
  ClusteringOptions options;
  options.clusters = 30;
  std::vector<double> reports;
  options.progress = [&](double done) { reports.push_back(done); };
  EXPECT_TRUE(k_means(Context(2), set.view(), nullptr, options));
  EXPECT_TRUE(std::ranges::is_sorted(reports));
  EXPECT_EQ(reports.back(), 1.0);
  // Drawing the start takes as long as one of the passes, so it is reported in parts.
  EXPECT_GT(reports.front(), 0.0);
  EXPECT_LT(reports.front(), 1.0 / (options.iterations + 2));
}

TEST(Clustering, CollapsedRowsFillOneCluster) {
  EmbeddingSet set = unit_set(200, 33, 20);
  for (std::int64_t i = 1; i < 200; ++i) {
    std::copy_n(set.embeddings.begin(), 33, set.embeddings.begin() + i * 33);
  }
  ClusteringOptions options;
  options.clusters = 20;
  const auto got = k_means(Context(2), set.view(), nullptr, options);
  EXPECT_EQ(got->empty, 19);
  EXPECT_EQ(normalized_mutual_information(set.labels, got->cluster), 0.0);
}

// Whichever tiles of columns the others stand in: of numbers this round all products are exact.
TEST(Clustering, OfEqualCentresTheFirstTakesTheRows) {
  EmbeddingSet set = unit_set(700, 8, 20);
  std::ranges::fill(set.embeddings, 0.5F);
  ClusteringOptions options;
  options.clusters = 600;
  const auto got = k_means(Context(2), set.view(), nullptr, options);
  EXPECT_EQ(got->cluster, std::vector<std::int64_t>(700, 0));
  EXPECT_EQ(got->empty, 599);
}

// Even if float32 holds all products of queries and gallery, those within the gallery, which
// k-means needs as well, may overflow.
TEST(Clustering, RefusesRowsWhoseProductsOverflow) {
  EmbeddingSet queries = unit_set(20, 16, 4), gallery = unit_set(300, 16, 60);
  for (float& x : queries.embeddings) x *= 1e-17F;
  for (float& x : gallery.embeddings) x *= 1e22F;
  ClusteringOptions options;
  options.clusters = 50;
  const EmbeddingView more = gallery.view();
  const std::string said =
      message_of<InputError>([&] { k_means(Context(1), queries.view(), &more, options); });
  EXPECT_TRUE(holds(said, "gallery: inner products up to 1.0e+44 overflow float32"));
  // The part with the longer rows decides, whichever it is.
  const EmbeddingView less = queries.view();
  EXPECT_TRUE(
      holds(message_of<InputError>([&] { k_means(Context(1), gallery.view(), &less, options); }),
            "embeddings: inner products up to 1.0e+44 overflow float32"));
}

TEST(Clustering, InterruptionEndsIt) {
  const EmbeddingSet set = unit_set(300, 8, 30);
  for (const int after : {1, 3, 9}) {
    ClusteringOptions options;
    options.clusters = 30;
    int polls = 0;
    options.interrupted = [&] { return ++polls >= after; };
    EXPECT_FALSE(k_means(Context(2), set.view(), nullptr, options)) << after;
  }
}

TEST(MutualInformation, DrawnLabellingsAgreeWithTheDefinition) {
  CounterRandom random(random_seed(), 0, 0);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t n = 1 + random.below(60), kinds_u = 1 + random.below(9);
    const std::int64_t kinds_v = 1 + random.below(9);
    const bool equal = random.below(4) == 0;
    std::vector<std::int64_t> u, v;
    for (std::int64_t r = 0; r < n; ++r) {
      u.push_back(random.below(kinds_u) - 4);
      v.push_back(equal || random.below(3) == 0 ? u.back() : random.below(kinds_v));
    }
    const auto share = [&](auto&& holds) {
      double count = 0;
      for (std::size_t r = 0; r < u.size(); ++r) count += holds(r) ? 1 : 0;
      return count / static_cast<double>(n);
    };
    double information = 0, h_u = 0, h_v = 0;
    for (std::int64_t a = -4; a < 9; ++a) {
      const double p = share([&](std::size_t r) { return u[r] == a; });
      const double q = share([&](std::size_t r) { return v[r] == a; });
      h_u -= p > 0 ? p * std::log(p) : 0;
      h_v -= q > 0 ? q * std::log(q) : 0;
      for (std::int64_t b = -4; b < 9; ++b) {
        const double own = share([&](std::size_t r) { return v[r] == b; });
        const double both = share([&](std::size_t r) { return u[r] == a && v[r] == b; });
        information += both > 0 ? both * std::log(both / (p * own)) : 0;
      }
    }
    const double expected = h_u + h_v == 0 ? 1 : 2 * information / (h_u + h_v);
    // Rounding of sums of at most 81 terms below 1 in double.
    const double got = normalized_mutual_information(u, v);
    EXPECT_NEAR(got, expected, 1e-12);
    EXPECT_TRUE(got >= 0 && got <= 1) << got - 1;
  }
}

}  // namespace
}  // namespace rk
