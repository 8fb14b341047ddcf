#include "retrieval/statistics/per_class.h"

#include "engine/base/error.h"
#include "retrieval/passes/undefined.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace rk {

std::vector<GroupMetrics> metrics_by_group(const PerQuery& queries,
                                           std::span<const std::int64_t> groups) {
  expect(groups.size() == queries.ap.size(),
         "[per_class] expected a group for each of {} queries, "
         "got {}",
         queries.ap.size(), groups.size());
  std::map<std::int64_t, GroupMetrics> rows;
  for (std::size_t q = 0; q < groups.size(); ++q) {
    GroupMetrics& row =
        rows.try_emplace(groups[q], GroupMetrics{groups[q], 0, 0, 0, 0, 0, 0}).first->second;
    ++row.queries;
    if (queries.num_relevant[q] == 0) continue;
    ++row.queries_valid;
    row.recall_at_1 += queries.first_hit_rank[q] == 1 ? 1 : 0;
    row.r_precision += queries.r_precision[q];
    row.map_at_r += queries.ap_at_r[q];
    row.map += queries.ap[q];
  }
  std::vector<GroupMetrics> out;
  out.reserve(rows.size());
  for (auto& [group, row] : rows) {
    const double n = row.queries_valid > 0 ? static_cast<double>(row.queries_valid) : kUndefined;
    for (double* sum : {&row.recall_at_1, &row.r_precision, &row.map_at_r, &row.map}) *sum /= n;
    out.push_back(row);
  }
  return out;
}

std::vector<GroupMetrics> hardest(std::vector<GroupMetrics> rows, std::size_t count) {
  std::erase_if(rows, [](const GroupMetrics& row) { return row.queries_valid == 0; });
  std::sort(rows.begin(), rows.end(), [](const GroupMetrics& a, const GroupMetrics& b) {
    return std::tie(a.map_at_r, a.map, a.group) < std::tie(b.map_at_r, b.map, b.group);
  });
  rows.resize(std::min(rows.size(), count));
  return rows;
}

}  // namespace rk
