// Evaluation on a GPU: what is counted in a tile of scores (retrieval/passes/score_pass.h), a block
// a query.
//   GatherPositives   copies the scores of a query's relevant candidates out
//   CountRanks        counts, for every positive, the irrelevant candidates that score at least as
//                     much: few thresholds one by one, of many how many lie between two of them
//   CountNegatives    bins of the scores of negative pairs, and their sums
//   CountUnequal      whether all of a tile has the same bits
// Queries and candidates are in class order (retrieval/passes/class_order.h): a query's class is
// one run of columns, the candidates removed from it a run inside. Counters are integers, to which
// blocks add in any order; sums are of one block after the other. So the same tiles give the same
// result.
#pragma once

#include "kernels/block_team.h"
#include "kernels/score_bins.h"

#include <cstdint>

namespace rk {

// A query's columns: [class_begin, class_end) has its label, [removed_begin, removed_end) of these
// are no candidates.
struct ScoredQuery {
  std::int64_t class_begin, class_end, removed_begin, removed_end;
  std::int64_t first;  // of its thresholds, in descending order
  std::int64_t count;  // of them
};

struct ScoreTileView {
  const float* scores = nullptr;  // [rows, stride]
  std::int64_t stride = 0;
  int rows = 0;
  std::int64_t begin = 0;  // columns
  std::int64_t end = 0;
  const ScoredQuery* queries = nullptr;  // [rows]

  // f(scores, n) for what lies of this tile in [from, until).
  template <class F>
  RK_FN RK_INLINE void columns(int row, std::int64_t from, std::int64_t until, F&& f) const {
    const std::int64_t first = from > begin ? from : begin;
    const std::int64_t last = until < end ? until : end;
    if (first < last)
      f(scores + row * stride + (first - begin), first, static_cast<int>(last - first));
  }
  // Those of other classes.
  template <class F> RK_FN RK_INLINE void irrelevant(int row, F&& f) const {
    const ScoredQuery& query = queries[row];
    columns(row, begin, query.class_begin, f);
    columns(row, query.class_end, end, f);
  }
};

struct GatherPositives {
  ScoreTileView tile;
  float* thresholds = nullptr;

  int blocks() const { return tile.rows; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const BlockTeamOver<Block> team(block);
    const ScoredQuery query = tile.queries[block.index()];
    const auto copy = [&](std::int64_t from, std::int64_t until, float* to) {
      tile.columns(block.index(), from, until, [&](const float* scores, std::int64_t first, int n) {
        team.for_each(n, [&](int k) { to[first - from + k] = scores[k]; });
      });
    };
    float* own = thresholds + query.first;
    copy(query.class_begin, query.removed_begin, own);
    copy(query.removed_end, query.class_end, own + (query.removed_begin - query.class_begin));
  }
};

struct CountRanks {
  // Up to here each threshold has its own pass over the scores; above it a score looks for its
  // place among them.
  static constexpr int kCompareAtMost = 64;

  ScoreTileView tile;
  const float* thresholds = nullptr;
  std::int32_t* counts =
      nullptr;  // where the thresholds are; > kCompareAtMost: between the last two

  template <int kThreads> struct Shared { std::int32_t found[kCompareAtMost]; };
  int blocks() const { return tile.rows; }
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    const BlockTeamOver<Block> team(block);
    const ScoredQuery query = tile.queries[block.index()];
    if (query.count == 0) return;
    const auto count = static_cast<int>(query.count);
    const float* own = thresholds + query.first;
    std::int32_t* to = counts + query.first;
    tile.irrelevant(block.index(), [&](const float* scores, std::int64_t, int n) {
      if (count <= kCompareAtMost) {
        team.sums(count, n, shared.found,
                  [&](int j, int k) { return scores[k] >= own[j] ? 1 : 0; });
        team.for_each(count, [&](int j) { to[j] += shared.found[j]; });
      } else {
        const float least = own[count - 1];
        team.for_each(n, [&](int k) {
          const float score = scores[k];
          if (!(score >= least)) return;
          int low = 0;  // the first threshold that the score reaches
          int high = count - 1;
          while (low < high) {
            const int middle = (low + high) / 2;
            if (own[middle] <= score) {
              high = middle;
            } else {
              low = middle + 1;
            }
          }
          block.add(to + low, 1);
        });
      }
    });
  }
};

// Where the scores of negative pairs are counted. `distinct`: the positive scores, ascending; cell
// 2k counts the negatives between k-1 and k, cell 2k + 1 those on k. Null where not wanted.
struct NegativeCounters {
  double inverse = 1;             // scores are scaled by it for the fine bins
  std::uint64_t* fine = nullptr;  // [kFineBins]
  std::uint64_t* jsd = nullptr;   // [kJsdBins], where they do not follow from the fine ones
  const float* distinct = nullptr;
  const std::int32_t* first = nullptr;  // [kFineBins + 1], of a fine bin's
  std::uint64_t* cells = nullptr;
};

struct CountNegatives {
  ScoreTileView tile;
  NegativeCounters to;
  double* sums = nullptr;  // [rows, 2]: of the scores, of their squares

  int blocks() const { return tile.rows; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const BlockTeamOver<Block> team(block);
    double* own = sums + std::int64_t{2} * block.index();
    tile.irrelevant(block.index(), [&](const float* scores, std::int64_t, int n) {
      const double sum = team.sum(n, [&](int k) {
        const auto s = static_cast<double>(scores[k]);
        count(block, scores[k]);
        return s;
      });
      const double squares = team.sum(n, [&](int k) {
        const auto s = static_cast<double>(scores[k]);
        return s * s;
      });
      team.for_each(1, [&](int) {
        own[0] += sum;
        own[1] += squares;
      });
    });
  }

 private:
  template <class Block> RK_FN RK_INLINE void count(const Block& block, float score) const {
    const auto s = static_cast<double>(score);
    const std::int32_t bin = fine_bin(s * to.inverse);
    block.add(to.fine + bin, std::uint64_t{1});
    if (to.jsd != nullptr) block.add(to.jsd + fine_bin(s) / kFinePerJsd, std::uint64_t{1});
    if (to.cells == nullptr) return;
    std::int32_t low = to.first[bin];
    std::int32_t high = to.first[bin + 1];
    const std::int32_t end = high;
    while (low < high) {
      const std::int32_t middle = (low + high) / 2;
      if (to.distinct[middle] < score) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const bool equal = low < end && to.distinct[low] == score;
    block.add(to.cells + std::int64_t{2} * low + (equal ? 1 : 0), std::uint64_t{1});
  }
};

struct CountUnequal {
  const float* scores = nullptr;
  std::int64_t stride = 0;
  int rows = 0;
  int columns = 0;
  std::int32_t* unequal = nullptr;  // [rows]

  int blocks() const { return rows; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const BlockTeamOver<Block> team(block);
    const float* row = scores + block.index() * stride;
    const int found = team.sum(columns, [&](int k) { return row[k] == scores[0] ? 0 : 1; });
    team.for_each(1, [&](int) { unequal[block.index()] = found; });
  }
};

}  // namespace rk
