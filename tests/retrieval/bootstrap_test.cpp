#include "retrieval/statistics/bootstrap.h"

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "retrieval/statistics/student.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>

namespace rk {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const std::vector<std::int64_t> kRecallAt{1, 4};

struct Case {
  PerQuery a, b;  // the same queries under two networks
  std::vector<std::int64_t> classes;
};

Case draw_case(CounterRandom& random, std::int64_t queries, std::int64_t classes) {
  Case out;
  for (std::int64_t q = 0; q < queries; ++q) {
    out.classes.push_back(random.below(classes) - 2);
    const std::int64_t relevant = random.below(4);
    for (PerQuery* one : {&out.a, &out.b}) {
      one->num_relevant.push_back(relevant);
      one->num_candidates.push_back(queries - 1);
      one->first_hit_rank.push_back(relevant == 0 ? 0 : 1 + random.below(6));
      for (auto* values : {&one->ap, &one->ap_at_r, &one->r_precision}) {
        values->push_back(relevant == 0 ? kNaN : random.uniform());
      }
    }
  }
  return out;
}

// One value a query and a metric: R@1, R@4, R-precision, MAP@R, mAP.
std::vector<double> values_of(const PerQuery& from, std::size_t q) {
  return {from.first_hit_rank[q] <= 1 ? 1.0 : 0.0, from.first_hit_rank[q] <= 4 ? 1.0 : 0.0,
          from.r_precision[q], from.ap_at_r[q], from.ap[q]};
}

// The share of Student's t distribution with `freedom` degrees of freedom below -t, and of the
// normal distribution: the densities' tails by the midpoint rule in x = tan(a). It asks for no
// value at pi/2, where that of one degree of freedom alone does not go to 0.
double tail(const std::function<double(double)>& density, double t) {
  constexpr int kSteps = 4'000;
  const double from = std::atan(t), step = (std::numbers::pi / 2 - from) / kSteps;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double a = from + (i + 0.5) * step;
    sum += density(std::tan(a)) / (std::cos(a) * std::cos(a));
  }
  return sum * step;
}

double student_tail(double t, double freedom) {
  const double scale = std::exp(std::lgamma((freedom + 1) / 2) - std::lgamma(freedom / 2)) /
                       std::sqrt(freedom * std::numbers::pi);
  return tail([&](double x) { return scale * std::pow(1 + x * x / freedom, -(freedom + 1) / 2); },
              t);
}

double normal_tail(double t) {
  return tail([](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }, t);
}

// Hesterberg's expanded share of n units, from the densities.
double expanded(double confidence, std::size_t n) {
  const double units = static_cast<double>(n);
  double low = 0, high = 1e5;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (student_tail(middle, units - 1) > (1 - confidence) / 2 ? low : high) = middle;
  }
  return normal_tail(std::sqrt(units / (units - 1)) * low);
}

// The definition in bootstrap.h, step by step, with the engine's random numbers.
std::vector<Interval> plain(const PerQuery& b, const PerQuery* a, const BootstrapOptions& options) {
  std::vector<std::vector<std::size_t>> units;
  std::map<std::int64_t, std::size_t> known;
  for (std::size_t q = 0; q < b.ap.size(); ++q) {
    if (std::isnan(b.ap[q])) continue;
    const std::int64_t own = static_cast<std::int64_t>(q);
    const std::int64_t key = options.classes.empty() ? own : options.classes[q];
    if (!known.contains(key)) {
      known[key] = units.size();
      units.emplace_back();
    }
    units[known[key]].push_back(q);
  }
  std::vector<Interval> out(5, Interval{kNaN, kNaN});
  if (units.size() < 2) return out;
  std::vector<std::vector<double>> means(5);
  for (int r = 0; r < options.resamples; ++r) {
    CounterRandom random(options.seed, 0x626f6f74, static_cast<std::uint64_t>(r));
    std::vector<std::size_t> drawn;
    for (std::size_t i = 0; i < units.size(); ++i) {
      const auto& unit =
          units[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(units.size())))];
      drawn.insert(drawn.end(), unit.begin(), unit.end());
    }
    for (std::size_t m = 0; m < 5; ++m) {
      double sum = 0;
      for (const std::size_t q : drawn) {
        sum += values_of(b, q)[m] - (a != nullptr ? values_of(*a, q)[m] : 0);
      }
      means[m].push_back(sum / static_cast<double>(drawn.size()));
    }
  }
  const auto quantile = [&](std::vector<double>& v, double share) {
    std::sort(v.begin(), v.end());
    const double place = share * static_cast<double>(v.size() - 1);
    const double low = v[static_cast<std::size_t>(std::floor(place))];
    const double high = v[static_cast<std::size_t>(std::ceil(place))];
    return low + (place - std::floor(place)) * (high - low);
  };
  const double share = expanded(options.confidence, units.size());
  for (std::size_t m = 0; m < 5; ++m) {
    out[m] = {quantile(means[m], share), quantile(means[m], 1 - share)};
  }
  return out;
}

// The tolerance covers the midpoint rule, which has the share to 1e-8, among at most 60 means whose
// neighbours are at most 2 apart.
void expect_equal(const RankIntervals& got, const std::vector<Interval>& expected) {
  const std::vector<Interval> all{got.recall[0], got.recall[1], got.r_precision, got.map_at_r,
                                  got.map};
  for (std::size_t m = 0; m < all.size(); ++m) {
    SCOPED_TRACE(m);
    if (std::isnan(expected[m].low)) {
      EXPECT_TRUE(std::isnan(all[m].low) && std::isnan(all[m].high));
      continue;
    }
    EXPECT_NEAR(all[m].low, expected[m].low, 1e-5);
    EXPECT_NEAR(all[m].high, expected[m].high, 1e-5);
  }
}

TEST(Bootstrap, DrawnCasesAgreeWithPlainResampling) {
  CounterRandom random(random_seed(), 0, 0);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const Case one = draw_case(random, 1 + random.below(80), 1 + random.below(12));
    BootstrapOptions options;
    options.confidence = random.uniform(0.5, 0.999);
    options.resamples = 1 + static_cast<int>(random.below(60));
    options.seed = random.next();
    if (random.below(2) == 0) options.classes = one.classes;
    const Context context(1 + static_cast<int>(random.below(3)));
    expect_equal(bootstrap(context, one.a, kRecallAt, options), plain(one.a, nullptr, options));
    expect_equal(bootstrap_difference(context, one.a, one.b, kRecallAt, options),
                 plain(one.b, &one.a, options));
  }
}

TEST(Bootstrap, NothingToFindGivesNoInterval) {
  CounterRandom random(1, 0, 0);
  Case one = draw_case(random, 6, 2);
  one.a.num_relevant.assign(6, 0);
  const RankIntervals got = bootstrap(Context(2), one.a, kRecallAt, {});
  EXPECT_TRUE(std::isnan(got.map.low) && std::isnan(got.recall[0].high));
}

// The 95 % interval for the mean of 1,000 coin throws is 0.5 -+ 1.96 * 0.5 / sqrt(1000). With 1,000
// resamples each end is off by about 5 % of that; a fifth is allowed, and the step from one mean to
// the next, at which an end may lie too.
TEST(Bootstrap, IntervalsOfAMeanHaveTheWidthOfTheNormalDistribution) {
  PerQuery queries;
  for (int q = 0; q < 1000; ++q) {
    queries.num_relevant.push_back(1);
    queries.first_hit_rank.push_back(q % 2 == 0 ? 1 : 9);
    for (auto* values : {&queries.ap, &queries.ap_at_r, &queries.r_precision}) {
      values->push_back(q % 2 == 0 ? 1.0 : 0.0);
    }
  }
  BootstrapOptions options;
  options.seed = random_seed();
  const double width = 1.96 * 0.5 / std::sqrt(1000.0);
  const auto check = [&](const Interval& got, double expected, int draws) {
    EXPECT_NEAR(got.low, 0.5 - expected, 0.2 * expected + 1.0 / draws);
    EXPECT_NEAR(got.high, 0.5 + expected, 0.2 * expected + 1.0 / draws);
  };
  check(bootstrap(Context(2), queries, kRecallAt, options).recall[0], width, 1000);
  // Resampling classes of ten equal queries makes ten times fewer independent draws.
  std::vector<std::int64_t> classes;
  for (std::int64_t q = 0; q < 1000; ++q) classes.push_back(q / 20 * 2 + q % 2);
  options.classes = classes;
  check(bootstrap(Context(2), queries, kRecallAt, options).map, width * std::sqrt(10.0), 100);
}

// Tables of the distribution, e.g. NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
TEST(Bootstrap, StudentsQuantilesAreThoseOfTables) {
  EXPECT_NEAR(student_quantile(0.95, 1), 12.706, 5e-4);
  EXPECT_NEAR(student_quantile(0.95, 2), 4.303, 5e-4);
  EXPECT_NEAR(student_quantile(0.95, 4), 2.776, 5e-4);
  EXPECT_NEAR(student_quantile(0.95, 9), 2.262, 5e-4);
  EXPECT_NEAR(student_quantile(0.99, 29), 2.756, 5e-4);
  EXPECT_NEAR(student_quantile(0.998, 3), 10.215, 5e-4);
  EXPECT_NEAR(student_quantile(0.95, 100), 1.984, 5e-4);
  EXPECT_NEAR(normal_quantile(0.95), 1.959964, 1e-6);
  EXPECT_NEAR(student_quantile(0.95, std::int64_t{1} << 40), 1.959964, 1e-6);
  EXPECT_NEAR(student_quantile(0.0, 7), 0, 1e-9);
  // Where the sum ends and the expansion begins.
  for (const double confidence : {0.5, 0.95, 0.999}) {
    for (const std::int64_t freedom : {199, 200, 201, 202, 1000}) {
      const double t = student_quantile(confidence, freedom);
      EXPECT_NEAR(2 * student_tail(t, static_cast<double>(freedom)), 1 - confidence, 1e-7)
          << confidence << ' ' << freedom;
    }
  }
}

// Intervals over few classes must hold the value of all classes as often as they say. They do
// in 0.925 of the sets of 5 classes here, plain percentiles in 0.86; the share of 2,000 sets
// has a standard deviation of 0.006.
TEST(Bootstrap, IntervalsOverFewClassesHoldWhatTheySay) {
  CounterRandom random(random_seed(), 0, 0);
  constexpr int kSets = 2000, kClasses = 5, kQueries = 10;
  int held = 0;
  for (int set = 0; set < kSets; ++set) {
    PerQuery queries;
    std::vector<std::int64_t> classes;
    for (std::int64_t c = 0; c < kClasses; ++c) {
      const double hits = 0.5 + 0.5 * (random.uniform() - random.uniform());  // of mean 0.5
      for (int q = 0; q < kQueries; ++q) {
        classes.push_back(c);
        queries.num_relevant.push_back(1);
        queries.first_hit_rank.push_back(random.uniform() < hits ? 1 : 9);
        for (auto* values : {&queries.ap, &queries.ap_at_r, &queries.r_precision}) {
          values->push_back(0);
        }
      }
    }
    const Interval got = bootstrap(Context(1), queries, kRecallAt,
                                   {.resamples = 1000, .seed = random.next(), .classes = classes})
                             .recall[0];
    if (got.low <= 0.5 && 0.5 <= got.high) ++held;
  }
  EXPECT_GT(held, 0.90 * kSets);
  EXPECT_LT(held, 0.96 * kSets);
}

TEST(Bootstrap, OneClassHasNoInterval) {
  CounterRandom random(3, 0, 0);
  const Case one = draw_case(random, 30, 1);
  BootstrapOptions options;
  options.classes = one.classes;
  const RankIntervals got = bootstrap(Context(1), one.a, kRecallAt, options);
  EXPECT_EQ(got.units, 1);
  EXPECT_TRUE(std::isnan(got.map.low) && std::isnan(got.recall[0].high));
  EXPECT_TRUE(holds(remark_on_few(got, "classes"), "only one of the classes"));
  const RankIntervals of_queries = bootstrap(Context(1), one.a, kRecallAt, {});
  EXPECT_EQ(remark_on_few(of_queries, "queries"), "");
  EXPECT_GE(of_queries.resamples, 1000);
}

// The farther out the ends, the more resamples they take.
TEST(Bootstrap, EnoughResamplesForTheEnds) {
  CounterRandom random(4, 0, 0);
  const Case many = draw_case(random, 4000, 2);
  EXPECT_NEAR(bootstrap(Context(2), many.a, kRecallAt, {}).resamples, 4000, 20);
  EXPECT_NEAR(bootstrap(Context(2), many.a, kRecallAt, {.confidence = 0.98}).resamples, 10'000, 50);
  const Case few = draw_case(random, 30, 4);
  BootstrapOptions options;
  options.classes = few.classes;
  EXPECT_EQ(bootstrap(Context(2), few.a, kRecallAt, options).resamples, 20'000);
}

// Twelve units' ends of 0.999 take more than the most resamples: that must be said.
TEST(Bootstrap, EndsThatNoResampleReachesAreSaid) {
  CounterRandom random(6, 0, 0);
  const Case one = draw_case(random, 200, 12);
  BootstrapOptions options;
  options.classes = one.classes;
  const RankIntervals near = bootstrap(Context(1), one.a, kRecallAt, options);
  EXPECT_EQ(near.units, 12);
  EXPECT_EQ(remark_on_few(near, "classes"), "");
  options.confidence = 0.999;
  const RankIntervals far = bootstrap(Context(1), one.a, kRecallAt, options);
  EXPECT_TRUE(holds(remark_on_few(far, "classes"),
                    "12 classes are too few for ends so far out: 20000 resamples do not reach"));
  EXPECT_NEAR(far.outside, 20'000 * expanded(0.999, 12), 1e-3);
}

// Thirty classes of two queries; those of all but a few find what they seek first.
TEST(Bootstrap, ValuesAtTheEndOfTheScaleAreSaid) {
  for (const std::int64_t hard : {0, 1, 4, 5, 30}) {
    SCOPED_TRACE(hard);
    Case all;
    for (std::int64_t q = 0; q < 60; ++q) {
      const bool found = q / 2 >= hard;
      all.classes.push_back(q / 2);
      all.a.num_relevant.push_back(1);
      all.a.num_candidates.push_back(59);
      all.a.first_hit_rank.push_back(found ? 1 : 2 + q % 2);
      for (auto* values : {&all.a.ap, &all.a.ap_at_r, &all.a.r_precision}) {
        values->push_back(found ? 1 : 0.4);
      }
    }
    BootstrapOptions options;
    options.classes = all.classes;
    const RankIntervals got = bootstrap(Context(1), all.a, std::vector<std::int64_t>{1}, options);
    const std::string all_metrics = "R@1, R-Precision, MAP@R, mAP";
    EXPECT_EQ(remark_on_ends(got, "classes"),
              hard == 5    ? ""
              : hard == 30 ? "R@1: fewer than 5 of the 30 classes keep it from 0 or 1; its "
                             "interval is too narrow"
                           : all_metrics +
                                 ": fewer than 5 of the 30 classes keep them from 0 or "
                                 "1; their intervals are too narrow");
  }
}

// Each thread must ask before every resample and stop at the first yes.
TEST(Bootstrap, ProgressRises) {
  CounterRandom random(4, 0, 0);
  const Case one = draw_case(random, 30, 5);
  for (const int threads : {1, 3}) {
    std::vector<double> reports;
    BootstrapOptions options{.resamples = 300};
    options.progress = [&](double done) { reports.push_back(done); };
    bootstrap(Context(threads), one.a, kRecallAt, options);
    ASSERT_EQ(reports.size(), 300U / static_cast<unsigned>(threads));
    EXPECT_TRUE(std::ranges::is_sorted(reports));
    EXPECT_EQ(reports.front(), 0);
    EXPECT_LT(reports.back(), 1);
    EXPECT_GT(reports.back(), 0.98);
  }
}

TEST(Bootstrap, AnInterruptionEndsIt) {
  CounterRandom random(5, 0, 0);
  const Case one = draw_case(random, 40, 4);
  std::atomic<int> asked = 0;
  BootstrapOptions options;
  options.resamples = 10'000;
  options.interrupted = [&] { return ++asked > 20; };
  bootstrap(Context(2), one.a, kRecallAt, options);
  EXPECT_GT(asked, 20);
  EXPECT_LE(asked, 22);
}

TEST(Bootstrap, RefusesRunsOnOtherQueries) {
  CounterRandom random(2, 0, 0);
  const Case one = draw_case(random, 9, 3);
  Case other = one;
  other.b.num_relevant[4] += 1;
  EXPECT_THROW(bootstrap_difference(Context(1), other.a, other.b, kRecallAt, {}), InputError);
  const Case longer = draw_case(random, 10, 3);
  EXPECT_THROW(bootstrap_difference(Context(1), one.a, longer.b, kRecallAt, {}), InputError);
}

}  // namespace
}  // namespace rk
