#include "retrieval/passes/positives.h"

#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "retrieval/passes/descending_sort.h"

#include <algorithm>
#include <functional>

namespace rk {
namespace {

// Copies a query's positives out of the tiles, skipping columns that are not candidates.
class GatherVisitor : public TileVisitor {
 public:
  GatherVisitor(const ClassOrder& order, Positives& positives)
      : order_(order), positives_(positives) {}

  bool wants(Range rows, Range columns) const override {
    return order_.may_hold_positives(rows, columns);
  }

  void visit(int, const ScoreTile& tile) override {
    for (std::int64_t q = tile.rows.begin; q < tile.rows.end; ++q) {
      const ClassOrder::Query& query = order_.queries[at(q)];
      const float* row = tile.scores + (q - tile.rows.begin) * ScoreTiles::kTileColumns;
      float* out = positives_.scores(q).data();
      const auto copy = [&](std::int64_t begin, std::int64_t end, float* to) {
        const std::int64_t from = std::max(begin, tile.columns.begin);
        const std::int64_t until = std::min(end, tile.columns.end);
        if (from < until) {
          std::copy(row + (from - tile.columns.begin), row + (until - tile.columns.begin),
                    to + (from - begin));
        }
      };
      copy(query.class_begin, query.removed_begin, out);
      copy(query.removed_end, query.class_end, out + (query.removed_begin - query.class_begin));
    }
  }

 private:
  const ClassOrder& order_;
  Positives& positives_;
};

}  // namespace

Positives::Positives(const ClassOrder& order, Range rows) : rows_(rows) {
  offsets_.reserve(static_cast<std::size_t>(rows.size()) + 1);
  offsets_.push_back(0);
  for (std::int64_t q = rows.begin; q < rows.end; ++q) {
    offsets_.push_back(offsets_.back() + order.queries[at(q)].relevant());
  }
  scores_ = Buffer::of<float>(total());
  counts_ = Buffer::of<std::int32_t>(total());
  std::fill_n(counts_.as<std::int32_t>(), total(), 0);
}

bool Positives::gather(const ClassOrder& order, ScoreTiles& tiles,
                       const std::function<bool(double)>& poll) {
  GatherVisitor visitor(order, *this);
  return tiles.run(rows_, visitor, poll);
}

void Positives::sort_scores(const ClassOrder& order, int threads) {
  std::vector<DescendingSort> sorts(static_cast<std::size_t>(threads));
  const std::int64_t candidates = std::ssize(order.gallery_row);
  parallel_for(threads, rows_.size(), [&](std::int64_t i, int member) {
    const ClassOrder::Query& query = order.queries[at(rows_.begin + i)];
    const bool all_relevant = query.class_end - query.class_begin == candidates;
    if (!all_relevant) sorts[at(member)](scores(rows_.begin + i));
  });
}

void Positives::sum_counts_between(int threads, std::int64_t compared) {
  parallel_for(threads, rows_.size(), [&](std::int64_t i, int) {
    const std::span<std::int32_t> own = counts(rows_.begin + i);
    if (static_cast<std::int64_t>(own.size()) <= compared) return;
    for (std::size_t k = 1; k < own.size(); ++k) own[k] += own[k - 1];
  });
}

}  // namespace rk
