// Counting, the inner loops of evaluation: how many scores reach each of a few sorted thresholds.
//
// Thresholds descend; a call adds #{score >= threshold k} to count k, or, in the histogram form,
// #{threshold k <= score < threshold k-1}, whose running sum is the same. Few thresholds are
// compared with a whole vector of scores at once; among many, each score is searched for, comparing
// it with sixteen thresholds at a time.
// A score of -infinity reaches no threshold.
#pragma once

#include <cstdint>
#include <span>

namespace rk {

// Above this many thresholds, searching (three comparisons of sixteen a score, and halving where
// there are more than 4,096) is cheaper than comparing (R / 16).
inline constexpr std::int64_t kCompareAtMost = 64;
inline constexpr std::int64_t kColumnLanes = 16;

// One row: thresholds.size() <= kCompareAtMost.
void count_reaching(std::span<const float> scores, std::span<const float> thresholds,
                    std::int32_t* counts);

// kColumnLanes neighbouring columns of a tile, each with its own thresholds: thresholds and counts
// are (steps, kColumnLanes), scores (rows, kColumnLanes) with `stride` floats from row to row. A
// column with fewer thresholds has infinity before its own: thresholds must descend, because
// counting goes from the last step up and ends at the first group of steps that no score reaches.
void count_reaching_columns(const float* scores, std::int64_t rows, std::int64_t stride,
                            const float* thresholds, std::int64_t steps, std::int32_t* counts);

// The histogram form: thresholds.size() > kCompareAtMost.
void count_between(std::span<const float> scores, std::span<const float> thresholds,
                   std::int32_t* counts);

}  // namespace rk
