// Confidence intervals of the rank metrics by bootstrap (Efron 1979): in the share `confidence` of
// test sets they hold the metric over all queries (or classes) of which the test set is a sample.
// Queries with something to find are drawn with replacement, one by one, or by whole classes:
// queries of one class share their relevant candidates, so intervals over classes are the honest
// ones; intervals over queries are narrower.
//
// A resample takes as many queries (or classes) as there are, n, and has the mean over its queries.
// low and high are the quantiles s and 1 - s of these means, with linear interpolation. Plain
// percentiles, s = (1 - confidence) / 2, are too narrow where n is small, as the normal
// distribution is beside Student's t, and by sqrt((n - 1) / n). So s is the expanded one of
// Hesterberg (What Teachers Should Know about the Bootstrap, The American Statistician 69, 2015):
//
//   s = Phi(-sqrt(n / (n - 1)) t)
//
// where -t to t holds `confidence` of Student's t distribution with n - 1 degrees of freedom. A
// resample depends on (seed, its number) alone, so the number of threads changes nothing.
#pragma once

#include "engine/device/context.h"
#include "retrieval/evaluate.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace rk {

struct BootstrapOptions {
  double confidence = 0.95;  // in (0, 1)
  int resamples = 0;         // 0: enough for 100 means outside of each end, within 1,000 to 20,000
  std::uint64_t seed = 0;
  std::function<bool()> interrupted = {};  // polled by all threads; true: the result is worthless
  std::function<void(double)> progress = {};  // gets the share done, from the caller's thread
  // [queries]: rows of one label are drawn together. Empty: each query on its own.
  std::span<const std::int64_t> classes = {};
};

struct Interval {
  double low, high;
};

// NaN if fewer than two units can be drawn.
struct RankIntervals {
  std::vector<Interval> recall;  // of each k of recall_at
  Interval r_precision, map_at_r, map;
  std::int64_t units = 0;  // the classes or queries that were drawn from
  int resamples = 0;
  double outside = 0;  // means expected outside of each end; below 1 the ends are the outermost
                       // means, and too near
  // The metrics that fewer than five units keep from 0 or from 1; not of differences.
  std::vector<std::string> near_ends = {};
};

// What is to be said of intervals over so few units ("classes" or "queries"), or with so few means
// outside; empty: nothing.
std::string remark_on_few(const RankIntervals& intervals, const std::string& over);

// What is to be said of bootstrap()'s intervals where so few units differ from an end of the scale
// that another test set may well have none, or several times as many; empty: nothing.
std::string remark_on_ends(const RankIntervals& intervals, const std::string& over);

RankIntervals bootstrap(const Context& context, const PerQuery& queries,
                        std::span<const std::int64_t> recall_at, const BootstrapOptions& options);

// Intervals of b - a, two runs on the same queries in the same order: each draw takes the same
// queries of both, so difficulty that they share cancels out. If an interval excludes 0, the runs
// differ. Throws InputError if the queries cannot be the same: their number differs, or a query's
// number of relevant candidates.
RankIntervals bootstrap_difference(const Context& context, const PerQuery& a, const PerQuery& b,
                                   std::span<const std::int64_t> recall_at,
                                   const BootstrapOptions& options);

}  // namespace rk
