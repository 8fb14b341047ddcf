#include "retrieval/statistics/bootstrap.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "engine/base/random.h"
#include "engine/base/random_stream.h"
#include "retrieval/passes/undefined.h"
#include "retrieval/statistics/student.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace rk {
namespace {

constexpr std::size_t kOthers = 3;  // R-precision, MAP@R, mAP
constexpr std::int64_t kFewUnits = 10;
constexpr std::int64_t kFewApart = 5;

// The units that are drawn, queries or classes, each as the sums of its queries' values.
struct Units {
  std::size_t metrics;
  std::vector<double> sums;  // (units, metrics)
  std::vector<double> queries;

  std::int64_t count() const { return static_cast<std::int64_t>(queries.size()); }
};

void add_values(const PerQuery& from, std::size_t query, std::span<const std::int64_t> recall_at,
                double sign, double* sums) {
  for (const std::int64_t k : recall_at) *sums++ += from.first_hit_rank[query] <= k ? sign : 0;
  *sums++ += sign * from.r_precision[query];
  *sums++ += sign * from.ap_at_r[query];
  *sums += sign * from.ap[query];
}

// `minus` may be nullptr.
Units make_units(const PerQuery& of, const PerQuery* minus, std::span<const std::int64_t> recall_at,
                 std::span<const std::int64_t> classes) {
  Units units{recall_at.size() + kOthers, {}, {}};
  std::unordered_map<std::int64_t, std::size_t> unit_of_class;
  for (std::size_t q = 0; q < of.ap.size(); ++q) {
    if (of.num_relevant[q] == 0) continue;
    std::size_t unit = units.queries.size();
    if (!classes.empty()) unit = unit_of_class.try_emplace(classes[q], unit).first->second;
    if (unit == units.queries.size()) {
      units.queries.push_back(0);
      units.sums.resize(units.sums.size() + units.metrics, 0.0);
    }
    units.queries[unit] += 1;
    double* sums = units.sums.data() + unit * units.metrics;
    add_values(of, q, recall_at, 1, sums);
    if (minus != nullptr) add_values(*minus, q, recall_at, -1, sums);
  }
  return units;
}

// The quantile of sorted values.
double quantile(const std::vector<double>& values, double share) {
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double part = place - static_cast<double>(below);
  return values[below] + part * (values[above] - values[below]);
}

// Counts how often each unit is drawn. Values are read afterwards, in order: reading them draw by
// draw would access memory at random.
void draw(const Units& units, std::uint64_t seed, std::int64_t resample,
          std::vector<std::uint32_t>& times) {
  CounterRandom random(seed, random_stream(RandomUseOnce::kBootstrap),
                       static_cast<std::uint64_t>(resample));
  std::fill(times.begin(), times.end(), 0U);
  for (std::int64_t i = 0; i < units.count(); ++i) ++times[at(random.below(units.count()))];
}

void take_means(const Units& units, const std::vector<std::uint32_t>& times, std::size_t resample,
                std::vector<std::vector<double>>& means) {
  std::vector<double> sums(units.metrics, 0.0);
  double queries = 0;
  for (std::size_t unit = 0; unit < times.size(); ++unit) {
    const double weight = times[unit];
    const double* values = units.sums.data() + unit * units.metrics;
    double* to = sums.data();
#pragma omp simd
    for (std::size_t m = 0; m < units.metrics; ++m) to[m] += weight * values[m];
    queries += weight * units.queries[unit];
  }
  for (std::size_t m = 0; m < units.metrics; ++m) means[m][resample] = sums[m] / queries;
}

std::string name_of(std::size_t metric, std::span<const std::int64_t> recall_at) {
  if (metric < recall_at.size()) return fmt::format("R@{}", recall_at[metric]);
  return std::array{"R-Precision", "MAP@R", "mAP"}[metric - recall_at.size()];
}

// See RankIntervals::near_ends.
std::vector<std::string> near_ends(const Units& units, std::span<const std::int64_t> recall_at) {
  std::vector<std::string> names;
  for (std::size_t m = 0; m < units.metrics; ++m) {
    std::int64_t above = 0, below = 0;
    for (std::size_t u = 0; u < units.queries.size(); ++u) {
      const double sum = units.sums[u * units.metrics + m];
      above += sum != 0;
      below += sum != units.queries[u];
    }
    if (std::min(above, below) < kFewApart) names.push_back(name_of(m, recall_at));
  }
  return names;
}

// Which quantiles of the means are the ends; see bootstrap.h.
double outer_share(double confidence, std::int64_t units) {
  const auto n = static_cast<double>(units);
  return normal_share(-std::sqrt(n / (n - 1)) * student_quantile(confidence, units - 1));
}

int enough_resamples(double outer_share) {
  constexpr double kOutside = 100, kFewest = 1000, kMost = 20'000;
  return static_cast<int>(std::clamp(std::ceil(kOutside / outer_share), kFewest, kMost));
}

// The means of all resamples, of each metric.
std::vector<std::vector<double>> resample(const Context& context, const Units& units,
                                          const BootstrapOptions& options, int resamples) {
  std::vector<std::vector<double>> means(units.metrics, std::vector<double>(at(resamples)));
  parallel_ranges(context.threads(), resamples, [&](std::int64_t begin, std::int64_t end, int n) {
    std::vector<std::uint32_t> times(units.queries.size());
    for (std::int64_t r = begin; r < end; ++r) {
      if (options.interrupted && options.interrupted()) return;
      if (options.progress && n == 0) {
        options.progress(static_cast<double>(r - begin) / static_cast<double>(end - begin));
      }
      draw(units, options.seed, r, times);
      take_means(units, times, at(r), means);
    }
  });
  return means;
}

RankIntervals intervals(const Context& context, const Units& units, std::size_t recalls,
                        const BootstrapOptions& options) {
  expect(options.confidence > 0 && options.confidence < 1 && options.resamples >= 0,
         "[bootstrap] expected a confidence within (0, 1) and resamples, got {} and {}",
         options.confidence, options.resamples);
  std::vector<Interval> all(units.metrics, {kUndefined, kUndefined});
  RankIntervals out;
  out.units = units.count();
  if (units.count() > 1) {
    const double share = outer_share(options.confidence, units.count());
    out.resamples = options.resamples > 0 ? options.resamples : enough_resamples(share);
    out.outside = share * out.resamples;
    std::vector<std::vector<double>> means = resample(context, units, options, out.resamples);
    for (std::size_t m = 0; m < all.size(); ++m) {
      std::sort(means[m].begin(), means[m].end());
      all[m] = {quantile(means[m], share), quantile(means[m], 1 - share)};
    }
  }
  out.r_precision = all[recalls];
  out.map_at_r = all[recalls + 1];
  out.map = all[recalls + 2];
  all.resize(recalls);
  out.recall = std::move(all);
  return out;
}

void check(const PerQuery& queries, const BootstrapOptions& options) {
  expect(options.classes.empty() || options.classes.size() == queries.ap.size(),
         "[bootstrap] expected a class for each of {} queries, got {}", queries.ap.size(),
         options.classes.size());
}

}  // namespace

std::string remark_on_few(const RankIntervals& intervals, const std::string& over) {
  if (intervals.units == 1) {
    return fmt::format("there is only one of the {} to draw from, so there are no intervals", over);
  }
  if (intervals.units == 0) return "";
  if (intervals.units >= kFewUnits) {
    if (intervals.outside >= 1) return "";
    return fmt::format(
        "{} {} are too few for ends so far out: {} resamples do not reach them, and the intervals "
        "hold less often than they say; a lower --confidence asks for nearer ends",
        intervals.units, over, intervals.resamples);
  }
  return fmt::format(
      "there are only {} {} to draw from: such intervals hold the metrics over all such {} less "
      "often than they say",
      intervals.units, over, over);
}

std::string remark_on_ends(const RankIntervals& intervals, const std::string& over) {
  if (intervals.units < kFewUnits || intervals.near_ends.empty()) return "";
  const bool one = intervals.near_ends.size() == 1;
  return fmt::format("{}: fewer than {} of the {} {} keep {} from 0 or 1; {} too narrow",
                     fmt::join(intervals.near_ends, ", "), kFewApart, intervals.units, over,
                     one ? "it" : "them", one ? "its interval is" : "their intervals are");
}

RankIntervals bootstrap(const Context& context, const PerQuery& queries,
                        std::span<const std::int64_t> recall_at, const BootstrapOptions& options) {
  check(queries, options);
  const Units units = make_units(queries, nullptr, recall_at, options.classes);
  RankIntervals out = intervals(context, units, recall_at.size(), options);
  out.near_ends = near_ends(units, recall_at);
  return out;
}

RankIntervals bootstrap_difference(const Context& context, const PerQuery& a, const PerQuery& b,
                                   std::span<const std::int64_t> recall_at,
                                   const BootstrapOptions& options) {
  if (a.ap.size() != b.ap.size()) {
    fail<InputError>("{} on one side and {} on the other: compare runs on the same test set",
                     counted(a.ap.size(), "query"), b.ap.size());
  }
  for (std::size_t q = 0; q < a.ap.size(); ++q) {
    if (a.num_relevant[q] == b.num_relevant[q]) continue;
    fail<InputError>(
        "query {} has {} to find on one side and {} on the other: compare runs on the same test "
        "set in the same order",
        q, a.num_relevant[q], b.num_relevant[q]);
  }
  check(b, options);
  return intervals(context, make_units(b, &a, recall_at, options.classes), recall_at.size(),
                   options);
}

}  // namespace rk
