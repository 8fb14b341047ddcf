// Counts, for every positive, the irrelevant candidates that score at least as much, tile by tile,
// and passes the scores of negative pairs on to the pair statistics.
//
// Symmetric (a set against itself): only columns after a row's class are read; such a score s_ij =
// s_ji counts for query i (along the row) and for query j (down the column). Otherwise every tile
// counts only along its rows. Relevant and removed candidates are never counted.
#pragma once

#include "retrieval/passes/class_order.h"
#include "retrieval/passes/count_kernels.h"
#include "retrieval/passes/pair_statistics.h"
#include "retrieval/passes/positives.h"
#include "retrieval/passes/score_tiles.h"

#include <cstdint>
#include <vector>

namespace rk {

class RankCounter : public TileVisitor {
 public:
  // `statistics` may be nullptr.
  RankCounter(int members, const ClassOrder& order, Positives& positives, bool symmetric,
              PairStatistics* statistics);

  bool wants(Range rows, Range columns) const override;
  void visit(int member, const ScoreTile& tile) override;
  void begin_strip(Range columns) override;
  void end_strip(Range columns) override;

  // Call it after the last tile: brings all counts into the form that Positives describes.
  void finish();
  // Bytes per positive of a strip, beyond those of Positives, in the symmetric case.
  static std::size_t symmetric_bytes(int members) {
    return sizeof(float) + static_cast<std::size_t>(members) * sizeof(std::int32_t);
  }
  std::size_t bytes() const { return peak_bytes_; }

 private:
  void count_along(int member, std::int64_t query, std::span<const float> scores);
  void count_down(int member, const ScoreTile& tile);

  const ClassOrder& order_;
  Positives& positives_;
  bool symmetric_;
  PairStatistics* statistics_;

  // A strip's columns in chunks of kColumnLanes: thresholds as (steps, kColumnLanes), each column's
  // at the end with infinity before them. So they descend in every lane, which lets counting go
  // from the end up and stop at a step that no score reaches. Columns with more than kCompareAtMost
  // thresholds have counters of their own after those of the chunk.
  struct Chunk {
    std::int64_t first, steps;  // of thresholds_ and of every member's counters
    bool wide;                  // has columns with counters of their own

    // Index of the highest threshold of a column that has `count` thresholds.
    std::int64_t slot(std::int64_t lane, std::int64_t count) const {
      return first + (steps - count) * kColumnLanes + lane;
    }
  };
  Range strip_;
  std::vector<Chunk> chunks_;
  std::vector<std::int64_t> wide_first_;  // by column: its own counters; -1: those of its chunk
  std::vector<float> thresholds_;
  std::vector<std::vector<std::int32_t>> counters_;  // by member
  std::size_t peak_bytes_ = 0;
};

}  // namespace rk
