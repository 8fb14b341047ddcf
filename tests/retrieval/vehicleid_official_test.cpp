#include "retrieval/protocols/vehicleid_official.h"
#include "engine/base/integers.h"

#include "retrieval/protocols/protocol.h"
#include "tests/retrieval/mixed_cases.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace rk {
namespace {

// SplitMix64 as its authors wrote it, with a state that advances.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

 private:
  std::uint64_t state_;
};

TEST(VehicleIdOfficial, DrawnCasesAgreeWithThePlainDefinition) {
  const std::uint64_t seed = random_seed();
  for (std::uint64_t index = 0; index < 20; ++index) {
    const MixedCase one = mixed_case(seed, index);
    SCOPED_TRACE(one.what);
    const EmbeddingSet& set = one.queries;
    DrawOptions options;
    options.seed = seed + index;
    options.draws = 4;
    const auto got = vehicleid_official(Context(one.threads), set.view(), options);
    SplitMix random(options.seed);
    std::map<std::int64_t, std::vector<std::int64_t>> classes;
    for (std::int64_t i = 0; i < set.count(); ++i) {
      classes[set.labels[at(i)]].push_back(i);
    }
    std::vector<double> first, fifth, map;
    for (int draw = 0; draw < options.draws; ++draw) {
      std::map<std::int64_t, std::int64_t> gallery;  // by label
      for (const auto& [label, rows] : classes) gallery[label] = rows[random.next() % rows.size()];
      double queries = 0, hits_1 = 0, hits_5 = 0, precision = 0;
      const auto score = [&](std::int64_t a, std::int64_t b) {
        const auto x = set.embeddings.begin() + a * set.dim;
        return std::inner_product(x, x + set.dim, set.embeddings.begin() + b * set.dim, 0.0);
      };
      for (std::int64_t q = 0; q < set.count(); ++q) {
        const std::int64_t own = gallery[set.labels[at(q)]];
        if (own == q) continue;
        double rank = 0;  // counts the match itself and every equal score
        for (const auto& [label, row] : gallery) rank += score(q, row) >= score(q, own) ? 1 : 0;
        queries += 1;
        hits_1 += rank <= 1 ? 1 : 0;
        hits_5 += rank <= 5 ? 1 : 0;
        precision += 1 / rank;
      }
      EXPECT_EQ(got->num_queries, static_cast<std::int64_t>(queries));
      EXPECT_EQ(got->num_gallery, static_cast<std::int64_t>(classes.size()));
      first.push_back(hits_1 / queries);
      fifth.push_back(hits_5 / queries);
      map.push_back(precision / queries);
    }
    const auto expect_drawn = [](const DrawnMetric& metric, const std::vector<double>& expected) {
      ASSERT_EQ(metric.per_draw.size(), expected.size());
      double mean = 0, squares = 0;
      for (const double x : expected) mean += x / static_cast<double>(expected.size());
      for (const double x : expected) squares += (x - mean) * (x - mean);
      if (std::isnan(mean)) {
        EXPECT_TRUE(std::isnan(metric.mean) && std::isnan(metric.deviation));
        return;
      }
      for (std::size_t t = 0; t < expected.size(); ++t) {
        EXPECT_NEAR(metric.per_draw[t], expected[t], 1e-12);  // sums of some hundred doubles
      }
      EXPECT_NEAR(metric.mean, mean, 1e-12);
      EXPECT_NEAR(metric.deviation, std::sqrt(squares / 3), 1e-12);
    };
    expect_drawn(got->recall[0], first);
    expect_drawn(got->recall[1], fifth);
    expect_drawn(got->map, map);
  }
}

TEST(VehicleIdOfficial, WithoutQueriesOneDrawHasNoDeviationEither) {
  EmbeddingSet set;
  set.dim = 1;
  set.embeddings = {1, 2, 3};
  set.labels = {0, 1, 2};
  DrawOptions options;
  options.draws = 1;
  const auto got = vehicleid_official(Context(1), set.view(), options);
  EXPECT_EQ(got->num_queries, 0);
  EXPECT_TRUE(std::isnan(got->map.mean) && std::isnan(got->map.deviation));
}

TEST(VehicleIdOfficial, ProgressRisesToItsEnd) {
  CounterRandom random(3, 0, 0);
  const EmbeddingSet set = mixed::draw_set(random, 100, mixed::kUniform, 1, 4, 0, 1.0F);
  DrawOptions options;
  double last = 0;
  options.progress = [&](double done) {
    EXPECT_GE(done, last);
    last = done;
  };
  EXPECT_TRUE(vehicleid_official(Context(2), set.view(), options));
  EXPECT_EQ(last, 1.0);
}

TEST(VehicleIdOfficial, InterruptionEndsIt) {
  CounterRandom random(3, 0, 0);
  const EmbeddingSet set = mixed::draw_set(random, 100, mixed::kUniform, 1, 4, 0, 1.0F);
  DrawOptions options;
  int polls = 0;
  options.interrupted = [&] { return ++polls > 8; };
  EXPECT_FALSE(vehicleid_official(Context(2), set.view(), options));
}

// The k of the papers that made the data sets known, or of those that compare on them.
TEST(Protocols, CountRecallAtThePapersK) {
  const std::map<std::string, std::vector<std::int64_t>> published = {
      {"sop", {1, 10, 100, 1000}},     {"inshop", {1, 10, 20, 30, 40, 50}},
      {"cub", {1, 2, 4, 8}},           {"cars", {1, 2, 4, 8}},
      {"inaturalist", {1, 4, 16, 32}}, {"vehicleid-all-vs-all", {1, 5}},
      {"vehicleid-official", {1, 5}},  {"veri-wild", {1, 5, 10}}};
  EXPECT_EQ(protocols().size(), published.size());
  for (const auto& [name, recall_at] : published) {
    const Protocol& one = protocol_named(name);
    EXPECT_EQ(one.recall_at, recall_at) << name;
    EXPECT_EQ(one.gallery, name == "inshop" || name == "veri-wild") << name;
    EXPECT_EQ(one.cameras, name == "veri-wild") << name;
    EXPECT_EQ(one.draws, name == "vehicleid-official") << name;
  }
}

TEST(Protocols, AreNamedOnceAndCounted) {
  std::set<std::string> names;
  for (const Protocol& one : protocols()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_EQ(&protocol_named(one.name), &one);
    EXPECT_EQ(one.recall_at.front(), 1);
    EXPECT_TRUE(std::is_sorted(one.recall_at.begin(), one.recall_at.end()));
  }
}

}  // namespace
}  // namespace rk
