// One query's metrics from the ranks of its positives.
//
// counts[j-1] = irrelevant candidates at or above the j-th positive, so rank_j = j + counts[j-1].
// r_precision = #{rank_j <= R} / R,  ap_at_r = sum_{rank_j <= R} (j / rank_j) / R,
// ap = sum_j (j / rank_j) / R.  R = counts.size(), at least 1.
#pragma once

#include <cstdint>
#include <span>

namespace rk {

struct RankMetrics {
  double ap, ap_at_r, r_precision;
  std::int64_t first_hit_rank;
};

RankMetrics rank_metrics(std::span<const std::int32_t> counts);

}  // namespace rk
