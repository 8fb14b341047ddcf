// Which queries a report shows. Only queries with something to find are candidates.
#pragma once

#include "retrieval/evaluate.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rk {

// The queries with the lowest average precision, lowest first; ties by the later first right
// result, then by row.
std::vector<std::int64_t> hardest_queries(const PerQuery& queries, std::size_t count);

// Queries drawn without replacement from those not in `without`; depends only on the seed and on
// which queries there are to draw from.
std::vector<std::int64_t> random_queries(const PerQuery& queries, std::size_t count,
                                         std::uint64_t seed, std::span<const std::int64_t> without);

// The queries whose average precision `b` raises most over `a`, most first; only those it raises.
std::vector<std::int64_t> most_gained(const PerQuery& a, const PerQuery& b, std::size_t count);

}  // namespace rk
