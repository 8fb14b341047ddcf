// Retrieval metrics of the queries of each class, or of each category: where a network fails.
//
// Means over the group's queries with something to find, as in retrieval/evaluate.h; NaN if it has
// none. A metric over all queries is the mean of these, weighted by queries_valid.
#pragma once

#include "retrieval/evaluate.h"

#include <cstdint>
#include <span>
#include <vector>

namespace rk {

struct GroupMetrics {
  std::int64_t group = 0;  // the label, or the category
  std::int64_t queries = 0, queries_valid = 0;
  double recall_at_1, r_precision, map_at_r, map;
};

// groups [queries]: the label or category of each, in the order of `queries`. Returns one row per
// group, ascending.
std::vector<GroupMetrics> metrics_by_group(const PerQuery& queries,
                                           std::span<const std::int64_t> groups);

// The `count` rows with the lowest MAP@R, lowest first; ties by lower mAP, then lower group. Leaves
// out rows without a query that has something to find.
std::vector<GroupMetrics> hardest(std::vector<GroupMetrics> rows, std::size_t count);

}  // namespace rk
