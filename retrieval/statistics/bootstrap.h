// Percentile bootstrap (Efron 1979) of the rank metrics: the range in which a metric would lie if
// the test set were drawn again. Queries with something to find are drawn with replacement, one by
// one, or by whole classes: queries of one class share their relevant candidates, so intervals over
// classes are the honest ones if there are many classes; intervals over queries are narrower.
//
// Each of `resamples` draws takes as many queries (or classes) as there are and computes the mean
// over their queries. low and high are the quantiles (1 -+ confidence) / 2 of these means, with
// linear interpolation. A draw depends on (seed, its number) alone, so the number of threads
// changes nothing. NaN if no query has anything to find.
#pragma once

#include "engine/device/context.h"
#include "retrieval/evaluate.h"

#include <cstdint>
#include <span>
#include <vector>

namespace rk {

struct BootstrapOptions {
  double confidence = 0.95;  // in (0, 1)
  int resamples = 1000;
  std::uint64_t seed = 0;
  // [queries]: rows of one label are drawn together. Empty: each query on its own.
  std::span<const std::int64_t> classes;
};

struct Interval {
  double low, high;
};

struct RankIntervals {
  std::vector<Interval> recall;  // of each k of recall_at
  Interval r_precision, map_at_r, map;
};

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
