// Which queries a report shows. Only queries with something to find are chosen from.
#pragma once

#include "retrieval/evaluate.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rk {

// Those of the lowest average precision, lowest first; of equal ones those whose first right result
// comes later, then by row.
std::vector<std::int64_t> hardest_queries(const PerQuery& queries, std::size_t count);

// Drawn without replacement from those that are not in `without`: a function of the seed and of
// which queries there are to draw from.
std::vector<std::int64_t> random_queries(const PerQuery& queries, std::size_t count,
                                         std::uint64_t seed, std::span<const std::int64_t> without);

// Those whose average precision `b` raises the most over `a`, most first; none that it does not.
std::vector<std::int64_t> most_gained(const PerQuery& a, const PerQuery& b, std::size_t count);

}  // namespace rk
