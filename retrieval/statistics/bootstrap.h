// Percentile bootstrap (Efron 1979) of the rank metrics: between which values a metric would lie
// were the test set drawn again. Queries with something to find are drawn with replacement, one by
// one, or by whole classes: queries of one class share what they have to find, so intervals over
// classes are the honest ones where classes are many; over queries they are narrower.
//
// Each of `resamples` draws as many queries (or classes) as there are and takes the mean over their
// queries. low and high are the quantiles (1 -+ confidence) / 2 of these means, between two of them
// by linear interpolation. A draw is a function of (seed, its number) alone, so the number of
// threads changes nothing. NaN where nothing has anything to find.
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

// Of b - a, two runs on the same queries in the same order: both are drawn together, so what is
// hard for both cancels out. An interval that does not hold 0 tells them apart. InputError where
// the queries cannot be the same: their number or what each has to find differs.
RankIntervals bootstrap_difference(const Context& context, const PerQuery& a, const PerQuery& b,
                                   std::span<const std::int64_t> recall_at,
                                   const BootstrapOptions& options);

}  // namespace rk
