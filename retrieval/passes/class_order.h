// Queries and gallery sorted by class, so that a query's relevant candidates are one run of columns
// and the tiles that hold positives lie along a diagonal.
//
// Classes are ordered by their size in the gallery, then by label (queries without a class there
// come first); rows of a class by camera, then by index. So neighbouring queries have similar
// numbers of positives, and candidates removed by the camera rule are a run inside the class's run.
#pragma once

#include "engine/base/integers.h"
#include "retrieval/passes/embedding_set.h"
#include "retrieval/passes/range.h"

#include <cstdint>
#include <vector>

namespace rk {

struct ClassOrder {
  // Positions in the sorted gallery: [class_begin, class_end) have the query's label; of these,
  // [removed_begin, removed_end) are not candidates (the query itself, or rows of its camera).
  struct Query {
    std::int64_t class_begin, class_end, removed_begin, removed_end;
    std::int64_t relevant() const {
      return (class_end - class_begin) - (removed_end - removed_begin);
    }
  };

  std::vector<std::int64_t> query_row, gallery_row;  // position -> row of the input
  std::vector<Query> queries;                        // by position; both ends never decrease

  // Whether some column may hold a positive of some row, and whether some column lies behind the
  // class of some row. Both ends of the runs never decrease from row to row.
  bool may_hold_positives(Range rows, Range columns) const {
    return queries[at(rows.begin)].class_begin < columns.end &&
           queries[at(rows.end - 1)].class_end > columns.begin;
  }
  bool reach_behind_class(Range rows, Range columns) const {
    return columns.end > queries[at(rows.begin)].class_end;
  }
  std::size_t bytes() const {
    return (query_row.size() + gallery_row.size()) * sizeof(std::int64_t) +
           queries.size() * sizeof(Query);
  }
};

// gallery == nullptr: the queries are searched among themselves, and both orders are the same. The
// camera rule applies if both sides have cameras.
ClassOrder make_class_order(const EmbeddingView& queries, const EmbeddingView* gallery);

}  // namespace rk
