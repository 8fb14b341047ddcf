// Which classes are confused: the classes of wrong first results.
#pragma once

#include "retrieval/evaluate.h"
#include "retrieval/nearest.h"
#include "retrieval/passes/embedding_set.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rk {

struct Confusion {
  std::int64_t label, taken_for;
  std::int64_t times;    // queries of `label` whose first result is of `taken_for`
  std::int64_t queries;  // all queries of `label`, both without those that have nothing to find
};

// The `count` most frequent confusions, most frequent first; ties by the larger share of the
// class's queries, then by labels. gallery: null if queries are searched among themselves.
std::vector<Confusion> most_confused(const EmbeddingSet& queries, const EmbeddingSet* gallery,
                                     const PerQuery& per_query, const Neighbours& neighbours,
                                     std::size_t count);

}  // namespace rk
