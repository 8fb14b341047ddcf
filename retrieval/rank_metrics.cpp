#include "retrieval/rank_metrics.h"

#include "engine/base/integers.h"

namespace rk {

RankMetrics rank_metrics(std::span<const std::int32_t> counts) {
  const auto relevant = static_cast<std::int64_t>(counts.size());
  double all = 0, within = 0;
  std::int64_t hits = 0;
  for (std::int64_t j = 1; j <= relevant; ++j) {
    const std::int64_t rank = j + counts[at(j - 1)];
    const double precision = static_cast<double>(j) / static_cast<double>(rank);
    all += precision;
    if (rank <= relevant) {
      within += precision;
      ++hits;
    }
  }
  const auto r = static_cast<double>(relevant);
  return {all / r, within / r, static_cast<double>(hits) / r, 1 + std::int64_t{counts[0]}};
}

}  // namespace rk
