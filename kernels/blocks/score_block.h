// Evaluation on a GPU: what is counted in a tile of scores (retrieval/passes/score_pass.h), one
// block for one query or a few.
//   GatherPositives   copies out the scores of a query's relevant candidates
//   CountScores       counts, for every positive, the irrelevant candidates that score at least as
//                     much: for few thresholds directly, for many the scores between two of them;
//                     bins the scores of negative pairs, and sums them
//   CountUnequal      whether all scores of a tile are equal
// Queries and candidates are in class order (retrieval/passes/class_order.h): a query's class is
// one run of columns, and the candidates removed from it are a run inside that. Counters are
// integers, to which blocks add in any order; every query's sums are added by one block, one tile
// after the other. So the same tiles give the same result.
#pragma once

#include "kernels/block_team.h"
#include "kernels/blocks/channel_tiles.h"
#include "kernels/score_bins.h"
#include "kernels/score_order.h"

#include <cstdint>
#include <limits>

namespace rk {

// A query's columns: [class_begin, class_end) have its label; of these, [removed_begin,
// removed_end) are not candidates.
struct ScoredQuery {
  std::int64_t class_begin, class_end, removed_begin, removed_end;
  std::int64_t first;  // index of its first threshold; thresholds are in descending order
  std::int64_t count;  // number of thresholds
};

struct ScoreTileView {
  const float* scores = nullptr;  // [rows, stride], rows aligned to 16 bytes, read in whole packs
  std::int64_t stride = 0;
  int rows = 0;
  std::int64_t begin = 0;  // columns
  std::int64_t end = 0;
  const ScoredQuery* queries = nullptr;  // [rows]

  // Calls f(scores, first, n) for the n columns of this tile in [from, until), from column `first`.
  template <class F>
  RK_FN RK_INLINE void columns(int row, std::int64_t from, std::int64_t until, F&& f) const {
    const std::int64_t first = from > begin ? from : begin;
    const std::int64_t last = until < end ? until : end;
    if (first < last)
      f(scores + row * stride + (first - begin), first, static_cast<int>(last - first));
  }
};

struct GatherPositives {
  ScoreTileView tile;
  float* thresholds = nullptr;

  int blocks() const { return tile.rows; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const auto team = team_of(block);
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

// Where the scores of negative pairs are counted. Null if not wanted.
struct NegativeCounters {
  double inverse = 1;             // multiplies scores for the fine bins
  std::uint64_t* fine = nullptr;  // [kFineBins]
  std::uint64_t* jsd = nullptr;   // [kJsdBins], if they do not follow from the fine bins
  double* sums = nullptr;         // [rows, 2]: of the scores, of their squares
  ScoreOrder positives = {};
  std::uint64_t* twice_wins = nullptr;  // [rows], sums of positives.twice_wins()

  NegativeCounters from_row(std::int64_t row) const {
    NegativeCounters out = *this;
    if (sums != nullptr) out.sums += 2 * row;
    if (twice_wins != nullptr) out.twice_wins += row;
    return out;
  }
};

// Reads each score once for everything that is counted, unless a query has more than kTogether
// thresholds. A block takes a few queries, whose scores mostly lie close together: scores in a
// window of the fine bins are counted in shared memory, 16 bits a bin, and added to the global
// counters at the block's end; scores outside the window are added to the global counters at once.
struct CountScores {
  // Up to this many thresholds, each is compared with every score; with more, a binary search finds
  // each score's place among them.
  static constexpr int kCompareAtMost = 64;
  static constexpr int kTogether = 8;
  static constexpr int kBlocksAtOnce = 3;

  ScoreTileView tile;
  const float* thresholds = nullptr;
  // For each threshold, the scores that reach it; with more than kCompareAtMost thresholds, the
  // scores whose first (largest) reached threshold it is.
  std::int32_t* counts = nullptr;
  NegativeCounters to = {};  // without sums: ranks only

  static constexpr int kMostColumns = 65535;  // of the tile
  static constexpr int kWindow = 16384;
  struct Memory {
    std::uint32_t bins[kBound<kWindow / 2>];  // two bins each, the even one in the low half
    std::uint32_t jsd[kBound<kJsdBins>];
    std::int32_t reached[kBound<kTogether>];
  };
  template <int kThreads> using Shared = Memory;

  // So few rows that no 16-bit counter overflows, even if all scores are the same.
  RK_BOTH int rows_each() const {
    constexpr int kMost = 8;
    const auto columns = static_cast<int>(tile.end - tile.begin);
    const int fitting = kMostColumns / (columns > 0 ? columns : 1);
    return fitting < 1 ? 1 : fitting < kMost ? fitting : kMost;
  }
  int blocks() const { return (tile.rows + rows_each() - 1) / rows_each(); }

  template <class Block> RK_FN void operator()(const Block& block, Memory& shared) const {
    const int first = block.index() * rows_each();
    const int end = first + rows_each() < tile.rows ? first + rows_each() : tile.rows;
    int window = 0;
    if (to.sums != nullptr) {
      for (int i = block.thread(); i < kWindow / 2; i += Block::kThreads) shared.bins[i] = 0;
      for (int i = block.thread(); i < kJsdBins; i += Block::kThreads) shared.jsd[i] = 0;
      window = window_of(block, first);  // its barriers also make the zeros visible to all threads
    }
    // The usual evaluation has a body of its own, which asks nothing score by score.
    const bool plain = to.inverse == 1 && to.jsd == nullptr;
    for (int row = first; row < end; ++row) {
      if (plain) {
        count_row<true>(block, shared, row, window);
      } else {
        count_row<false>(block, shared, row, window);
      }
    }
    if (to.sums == nullptr) return;
    // Every row ends with its sums, whose barriers make all counts visible.
    for (int i = block.thread(); i < kWindow / 2; i += Block::kThreads) {
      const std::uint32_t two = shared.bins[i];
      std::uint64_t* bins = to.fine + window + std::int64_t{2} * i;
      if ((two & 0xFFFFU) != 0) block.add(bins, std::uint64_t{two & 0xFFFFU});
      if (two >> 16 != 0) block.add(bins + 1, std::uint64_t{two >> 16});
    }
    if (to.jsd == nullptr) return;
    for (int i = block.thread(); i < kJsdBins; i += Block::kThreads) {
      if (shared.jsd[i] != 0) block.add(to.jsd + i, std::uint64_t{shared.jsd[i]});
    }
  }

 private:
  static constexpr int kPackWidth = 4;
  static constexpr int kPacksAtOnce = 4;
  using ScorePack = Pack<float, kPackWidth>;

  // The columns of a row's own class, counted from the tile's first column.
  struct Class {
    int begin, end;
  };
  RK_FN RK_INLINE Class class_of(const ScoredQuery& query) const {
    const auto within = [&](std::int64_t column) {
      const std::int64_t last = column < tile.end ? column : tile.end;
      return static_cast<int>(last > tile.begin ? last - tile.begin : 0);
    };
    return {within(query.class_begin), within(query.class_end)};
  }

  // Begin of the window, centred on the mean bin of a sample of the row's scores.
  template <class Block> RK_FN RK_INLINE int window_of(const Block& block, int row) const {
    const auto team = team_of(block);
    const auto n = static_cast<int>(tile.end - tile.begin);
    const int few = n < Block::kThreads ? n : Block::kThreads;
    const std::int64_t step = few > 0 ? n / few : 1;
    const float* scores = tile.scores + row * tile.stride;
    const std::int64_t total =
        team.sum(few, [&](int i) { return static_cast<std::int64_t>(bin_of(scores[i * step])); });
    const auto middle = few > 0 ? static_cast<int>(total / few) : 0;
    const int begin = middle - kWindow / 2;
    return begin < 0 ? 0 : begin < kFineBins - kWindow ? begin : kFineBins - kWindow;
  }

  RK_FN RK_INLINE std::int32_t bin_of(float score) const {
    return to.inverse == 1 ? fine_bin_fused(score)
                           : fine_bin(static_cast<double>(score) * to.inverse);
  }

  // kPlain: the fine bins are those of the scores themselves, and the JSD's follow from them.
  template <bool kPlain, class Block>
  RK_FN RK_INLINE void count_row(const Block& block, Memory& shared, int row, int window) const {
    const ScoredQuery query = tile.queries[row];
    const auto count = static_cast<int>(query.count);
    const bool searches = count > kCompareAtMost;
    const float* own = thresholds + query.first;
    std::int32_t* found = counts + query.first;
    double sum = 0;
    double squares = 0;
    std::uint64_t twice_wins = 0;
    const auto search = [&](float score) { add_between(block, own, count, found, score); };
    if (to.sums != nullptr) {
      const auto add = [&](float score) {
        const auto s = static_cast<double>(score);
        sum += s;
        squares += s * s;
        add_to_bin<kPlain>(block, shared, window, score);
        if (to.twice_wins != nullptr) twice_wins += to.positives.twice_wins(score);
      };
      if (searches) {
        compare(block, shared, row, query, own, 0, found, [&](float score) {
          add(score);
          search(score);
        });
      } else {
        compare(block, shared, row, query, own, count, found, add);
      }
      const BlockTeam<Block> team(block);
      sum = team.total(sum);
      squares = team.total(squares);
      const std::uint64_t all_wins = team.total(twice_wins);
      if (block.thread() == 0) {
        to.sums[std::int64_t{2} * row] += sum;
        to.sums[std::int64_t{2} * row + 1] += squares;
        if (to.twice_wins != nullptr) to.twice_wins[row] += all_wins;
      }
    } else if (searches) {
      compare(block, shared, row, query, own, 0, found, search);
    } else if (count > 0) {
      compare(block, shared, row, query, own, count, found, [](float) {});
    }
    if (searches) return;
    for (int done = kTogether; done < count; done += kTogether) {
      compare(block, shared, row, query, own + done, count - done, found + done, [](float) {});
    }
  }

  // For the first kTogether of `count` thresholds, adds to `found` how many irrelevant scores reach
  // each; calls f(score) for every irrelevant score.
  template <class Block, class F>
  RK_FN RK_INLINE void compare(const Block& block, Memory& shared, int row,
                               const ScoredQuery& query, const float* own, int count,
                               std::int32_t* found, F&& f) const {
    constexpr int kStep = Block::kThreads * kPackWidth;
    const Class relevant = class_of(query);
    const auto n = static_cast<int>(tile.end - tile.begin);
    const float* scores = tile.scores + row * tile.stride;
    const int compared = count < kTogether ? count : kTogether;
    float threshold[kBound<kTogether>];
    float reached[kBound<kTogether>] = {};  // a comparison yields a float in one instruction
    RK_UNROLL
    for (int j = 0; j < kTogether; ++j) {
      threshold[j] = j < compared ? own[j] : std::numeric_limits<float>::infinity();
    }
    for_rows<kPacksAtOnce>(
        block.thread() * kPackWidth, n, kStep,
        [&](int column) { return load_pack<kPackWidth>(scores + column); },
        [&](int column, const ScorePack& pack) {
          RK_UNROLL
          for (int k = 0; k < kPackWidth; ++k) {
            const int at = column + k;
            const bool wanted = at < n && (at < relevant.begin || at >= relevant.end);
            // NaN reaches no threshold. Comparing it costs less than a branch around the counters,
            // for which nvcc copies all of them.
            const float score = wanted ? pack[k] : std::numeric_limits<float>::quiet_NaN();
            RK_UNROLL
            for (int j = 0; j < kTogether; ++j) reached[j] += score >= threshold[j] ? 1.0F : 0.0F;
            if (wanted) f(score);
          }
        });
    if (compared <= 0) return;
    const BlockTeam<Block> team(block);
    for (int j = block.thread(); j < kTogether; j += Block::kThreads) shared.reached[j] = 0;
    block.sync();
    RK_UNROLL
    for (int j = 0; j < kTogether; ++j) {
      const int total = team.warp_sum(static_cast<int>(reached[j]));
      if (block.thread() % Block::kWarpSize == 0 && j < compared && total > 0) {
        block.add(&shared.reached[j], total);
      }
    }
    block.sync();
    // Read by the same thread that sets it to 0 next time, so no barrier is needed.
    for (int j = block.thread(); j < compared; j += Block::kThreads) found[j] += shared.reached[j];
  }

  // Counts the score at the first threshold that it reaches.
  template <class Block>
  RK_FN RK_INLINE void add_between(const Block& block, const float* own, int count,
                                   std::int32_t* found, float score) const {
    if (!(score >= own[count - 1])) return;
    int low = 0;
    int high = count - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (own[middle] <= score) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    block.add(found + low, 1);
  }

  template <bool kPlain, class Block>
  RK_FN RK_INLINE void add_to_bin(const Block& block, Memory& shared, int window,
                                  float score) const {
    const std::int32_t bin = kPlain ? fine_bin_fused(score) : bin_of(score);
    const int in_window = bin - window;
    if (in_window >= 0 && in_window < kWindow) {
      block.add(&shared.bins[in_window / 2], in_window % 2 == 0 ? 1U : 1U << 16);
    } else {
      block.add(to.fine + bin, std::uint64_t{1});
    }
    if (!kPlain && to.jsd != nullptr) {
      block.add(&shared.jsd[fine_bin(static_cast<double>(score)) / kFinePerJsd], 1U);
    }
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
    const auto team = team_of(block);
    const float* row = scores + block.index() * stride;
    const int found = team.sum(columns, [&](int k) { return row[k] == scores[0] ? 0 : 1; });
    team.for_each(1, [&](int) { unequal[block.index()] = found; });
  }
};

}  // namespace rk
