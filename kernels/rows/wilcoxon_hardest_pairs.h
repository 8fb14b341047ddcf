// wilcoxon_bh between measure() and row() of kernels/rows/wilcoxon_row.h: gathers the hardest pairs
// of the queries that count, compares every query with all of them, one block a query, and adds up
// the values. Only the device knows how many queries count: a captured step may have any number of
// them.
#pragma once

#include "kernels/block_team.h"
#include "kernels/launch_on_gpu.h"
#include "kernels/rows/batch_numbers.h"
#include "kernels/rows/wilcoxon_row.h"

#include <cstdint>

namespace rk {

template <class S> struct HardestPairs {
  S* positive = nullptr;          // [rows], of which the first `count` are set
  S* negative = nullptr;          // [rows]
  std::int32_t* query = nullptr;  // [rows]
  std::int32_t* count = nullptr;  // [1]
};

template <class S> struct GatherHardestPairs {
  static constexpr bool kOnGpu = kRunsOnGpu<S>;

  int rows = 0;
  const std::uint8_t* counted = nullptr;  // [rows]
  const S* stats = nullptr;               // [rows, 2]
  HardestPairs<S> pairs;

  int blocks() const { return 1; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const auto team = team_of(block);
    const int count = team.compact(
        rows, [&](int row) { return counted[row] != 0; },
        [&](int row, int slot) {
          pairs.positive[slot] = stats[std::int64_t{2} * row];
          pairs.negative[slot] = stats[std::int64_t{2} * row + 1];
          pairs.query[slot] = row;
        });
    team.for_each(1, [&](int) { *pairs.count = count; });
  }
};

template <class S> struct CompareHardestPairs {
  static constexpr bool kOnGpu = kRunsOnGpu<S>;

  int rows = 0;
  S r = 0;
  HardestPairs<S> pairs;
  S* values = nullptr;  // [rows]
  S* slopes = nullptr;  // [rows, 2]

  int blocks() const { return rows; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const int count = *pairs.count;
    const int i = block.index();
    if (i >= count) return;
    WilcoxonPairs<S>::row(team_of(block), r, pairs.positive, pairs.negative, count, i, values + i,
                          slopes + std::int64_t{2} * pairs.query[i]);
  }
};

// part[0] = the mean over all pairs of hardest pairs.
template <class S> struct SumHardestPairs {
  static constexpr bool kOnGpu = kRunsOnGpu<S>;

  HardestPairs<S> pairs;
  const S* values = nullptr;
  double* part = nullptr;

  int blocks() const { return 1; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const auto team = team_of(block);
    const int count = *pairs.count;
    const double total = team.sum(count, [&](int i) { return static_cast<double>(values[i]); });
    const double all = static_cast<double>(count) * count;
    team.for_each(1, [&](int) { *part = total / all; });
  }
};

}  // namespace rk
