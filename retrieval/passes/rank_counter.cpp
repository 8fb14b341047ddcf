#include "retrieval/passes/rank_counter.h"

#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "retrieval/passes/count_kernels.h"

#include <algorithm>
#include <array>
#include <limits>

namespace rk {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

RankCounter::RankCounter(int members, const ClassOrder& order, Positives& positives, bool symmetric,
                         PairStatistics* statistics)
    : order_(order),
      positives_(positives),
      symmetric_(symmetric),
      statistics_(statistics),
      counters_(static_cast<std::size_t>(members)) {}

bool RankCounter::wants(Range rows, Range columns) const {
  return !symmetric_ || order_.reach_behind_class(rows, columns);
}

void RankCounter::count_along(int member, std::int64_t query, std::span<const float> scores) {
  if (scores.empty()) return;
  const std::span<const float> thresholds = positives_.scores(query);
  std::int32_t* counts = positives_.counts(query).data();
  if (positives_.count(query) > kCompareAtMost) {
    count_between(scores, thresholds, counts);
  } else if (!thresholds.empty()) {
    count_reaching(scores, thresholds, counts);
  }
  if (statistics_ != nullptr) statistics_->add_negatives(member, query, scores);
}

void RankCounter::visit(int member, const ScoreTile& tile) {
  const std::int64_t begin = tile.columns.begin, end = tile.columns.end;
  for (std::int64_t q = tile.rows.begin; q < tile.rows.end; ++q) {
    const ClassOrder::Query& query = order_.queries[at(q)];
    const std::int64_t offset = (q - tile.rows.begin) * ScoreTiles::kTileColumns;
    const auto along = [&](std::int64_t from, std::int64_t until) {
      if (from < until) {
        count_along(
            member, q,
            {tile.scores + offset + (from - begin), static_cast<std::size_t>(until - from)});
      }
    };
    const std::int64_t behind = std::clamp(query.class_end, begin, end);
    along(behind, end);
    if (symmetric_) {
      std::fill_n(tile.scores + offset, behind - begin, -kInfinity);
    } else {
      along(begin, std::clamp(query.class_begin, begin, end));
    }
  }
  if (symmetric_) count_down(member, tile);
}

void RankCounter::count_down(int member, const ScoreTile& tile) {
  std::int32_t* counters = counters_[at(member)].data();
  const std::int64_t rows = tile.rows.size();
  for (std::int64_t c = tile.columns.begin; c < tile.columns.end; c += kColumnLanes) {
    const Chunk& chunk = chunks_[at((c - strip_.begin) / kColumnLanes)];
    const float* scores = tile.scores + (c - tile.columns.begin);
    count_reaching_columns(scores, rows, ScoreTiles::kTileColumns, thresholds_.data() + chunk.first,
                           chunk.steps, counters + chunk.first);
    if (!chunk.wide) continue;
    for (std::int64_t i = 0; i < std::min(kColumnLanes, tile.columns.end - c); ++i) {
      const std::int64_t first = wide_first_[at(c + i - strip_.begin)];
      if (first < 0) continue;
      std::array<float, ScoreTiles::kTileRows> column;
      for (std::int64_t r = 0; r < rows; ++r) {
        column[at(r)] = scores[r * ScoreTiles::kTileColumns + i];
      }
      count_between({column.data(), static_cast<std::size_t>(rows)}, positives_.scores(c + i),
                    counters + first);
    }
  }
}

void RankCounter::begin_strip(Range columns) {
  if (!symmetric_) return;
  strip_ = columns;
  chunks_.clear();
  thresholds_.clear();
  wide_first_.assign(static_cast<std::size_t>(columns.size()), -1);
  for (std::int64_t c = columns.begin; c < columns.end; c += kColumnLanes) {
    const std::int64_t lanes = std::min(kColumnLanes, columns.end - c);
    Chunk chunk{static_cast<std::int64_t>(thresholds_.size()), 0, false};
    for (std::int64_t i = 0; i < lanes; ++i) {
      const std::int64_t count = positives_.count(c + i);
      if (count > kCompareAtMost) {
        chunk.wide = true;
      } else {
        chunk.steps = std::max(chunk.steps, count);
      }
    }
    thresholds_.resize(thresholds_.size() + static_cast<std::size_t>(chunk.steps * kColumnLanes),
                       kInfinity);
    for (std::int64_t i = 0; i < lanes; ++i) {
      const std::int64_t count = positives_.count(c + i);
      if (count == 0 || count > kCompareAtMost) continue;
      float* out = thresholds_.data() + chunk.slot(i, count);
      for (const float score : positives_.scores(c + i)) {
        *out = score;
        out += kColumnLanes;
      }
    }
    chunks_.push_back(chunk);
  }
  auto slots = static_cast<std::int64_t>(thresholds_.size());
  for (std::int64_t c = columns.begin; c < columns.end; ++c) {
    if (positives_.count(c) <= kCompareAtMost) continue;
    wide_first_[at(c - columns.begin)] = slots;
    slots += positives_.count(c);
  }
  for (auto& counters : counters_) counters.assign(static_cast<std::size_t>(slots), 0);
  peak_bytes_ = std::max(
      peak_bytes_, thresholds_.capacity() * sizeof(float) + chunks_.capacity() * sizeof(Chunk) +
                       wide_first_.capacity() * sizeof(std::int64_t) +
                       counters_.size() * counters_[0].capacity() * sizeof(std::int32_t));
}

void RankCounter::end_strip(Range columns) {
  if (!symmetric_) return;
  parallel_for(static_cast<int>(counters_.size()), columns.size(), [&](std::int64_t i, int) {
    const std::span<std::int32_t> counts = positives_.counts(columns.begin + i);
    const Chunk& chunk = chunks_[at(i / kColumnLanes)];
    const std::int64_t wide = wide_first_[at(i)];
    std::int64_t slot =
        wide >= 0 ? wide : chunk.slot(i % kColumnLanes, static_cast<std::int64_t>(counts.size()));
    for (std::int32_t& count : counts) {
      for (const auto& counters : counters_) count += counters[at(slot)];
      slot += wide >= 0 ? 1 : kColumnLanes;
    }
  });
}

void RankCounter::finish() {
  positives_.sum_counts_between(static_cast<int>(counters_.size()), kCompareAtMost);
}

}  // namespace rk
