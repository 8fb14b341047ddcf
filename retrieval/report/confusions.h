// Which class is taken for which: the classes of first results that are wrong.
#pragma once

#include "retrieval/nearest.h"
#include "retrieval/passes/embedding_set.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rk {

struct Confusion {
  std::int64_t label, taken_for;
  std::int64_t times;    // queries of `label` whose first result is of `taken_for`
  std::int64_t queries;  // of `label`, all of them
};

// The `count` that occur most often, most first; then those with the larger share of their class's
// queries, then by labels. gallery: null where queries are searched for among themselves.
std::vector<Confusion> most_confused(const EmbeddingSet& queries, const EmbeddingSet* gallery,
                                     const Neighbours& neighbours, std::size_t count);

}  // namespace rk
