#include "retrieval/passes/positive_order.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "kernels/simd.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>

namespace rk {
namespace {

constexpr std::int64_t kWindow = 16;  // scores compared at once
constexpr std::int64_t kEach = 2;  // positives to a cell, on average: few hold more than a window
// So many and their cells fit into the caches that are near. With more, asking for memory ahead of
// time takes 5 to 40 % off (a million to 12 million, on an AMD EPYC).
constexpr std::uint32_t kInCaches = 500'000;
// Beyond this a score minus the lowest might be rounded to zero before it is scaled.
constexpr double kMostScale = 1e30;

std::int64_t cells_for(std::int64_t positives) {
  return std::max(positives / kEach, std::int64_t{1});
}

template <int kWidth>
std::uint64_t twice_wins_by(const ScoreOrder& order, std::span<const float> negatives) {
  using L = Lanes<kWidth>;
  constexpr std::size_t kBlock = 256;
  std::array<std::int32_t, kBlock> cells;
  const bool beyond_caches = order.count > kInCaches;
  std::uint64_t losses = 0;
  for (std::size_t begin = 0; begin < negatives.size(); begin += kBlock) {
    const std::size_t n = std::min(kBlock, negatives.size() - begin);
    const float* scores = negatives.data() + begin;
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) cells[i] = order.cell_of(scores[i]);
    if (beyond_caches) {
      for (std::size_t i = 0; i < n; ++i) __builtin_prefetch(order.first + cells[i]);
      for (std::size_t i = 0; i < n; ++i) {
        const float* window = order.sorted + order.first[cells[i]];  // mostly on two lines of them
        __builtin_prefetch(window);
        __builtin_prefetch(window + kWindow - 1);
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t from = order.first[cells[i]];
      if (kWidth == 1 || order.first[cells[i] + 1] - from > kWindow) {
        losses += 2 * order.count - order.twice_wins(scores[i]);
        continue;
      }
      // Scores of later cells, and the infinity behind the last, are above this one.
      const typename L::V score = L::all(scores[i]);
      int below = 0, above = 0;
      for (std::int64_t k = 0; k < kWindow; k += kWidth) {
        const typename L::V positives = L::load(order.sorted + from + k);
        below += std::popcount(L::greater(score, positives));
        above += std::popcount(L::greater(positives, score));
      }
      losses += 2 * std::uint64_t{from} + static_cast<std::uint64_t>(below + int{kWindow} - above);
    }
  }
  return std::uint64_t{2} * order.count * negatives.size() - losses;
}

}  // namespace

PositiveOrder::PositiveOrder(int threads, std::span<const float> positives) {
  const std::int64_t count = std::ssize(positives);
  expect(count <= kMost, "[positive_order] expected at most {} positives, got {}", kMost, count);
  const std::int64_t cells = cells_for(count);
  view_ = {.count = static_cast<std::uint32_t>(count), .cells = static_cast<std::int32_t>(cells)};
  if (count > 0) {
    const auto [lowest, highest] = std::ranges::minmax(positives);
    const double range = static_cast<double>(highest) - static_cast<double>(lowest);
    const double scale = static_cast<double>(cells) / range;
    view_.lowest = lowest;
    view_.scale = scale <= kMostScale ? static_cast<float>(scale) : 0;
  }
  sorted_ = Buffer::of<float>(count + kWindow);
  first_ = Buffer::of<std::uint32_t>(cells + 1);
  auto* sorted = sorted_.as<float>();
  auto* first = first_.as<std::uint32_t>();
  std::fill_n(sorted + count, kWindow, std::numeric_limits<float>::infinity());

  // A sort by counting. Every member reads all scores and takes those of its own cells.
  const auto for_each_of = [&](std::int64_t begin, std::int64_t end, auto&& f) {
    for (const float score : positives) {
      const std::int32_t cell = view_.cell_of(score);
      if (cell >= begin && cell < end) f(cell, score);
    }
  };
  parallel_ranges(threads, cells, [&](std::int64_t begin, std::int64_t end, int) {
    std::fill(first + begin, first + end, 0U);
    for_each_of(begin, end, [&](std::int32_t cell, float) { ++first[cell]; });
  });
  std::exclusive_scan(first, first + cells, first, 0U);
  parallel_ranges(threads, cells, [&](std::int64_t begin, std::int64_t end, int) {
    for_each_of(begin, end, [&](std::int32_t cell, float score) { sorted[first[cell]++] = score; });
  });
  // Now each cell's place is that of the next one.
  std::copy_backward(first, first + cells, first + cells + 1);
  first[0] = 0;
  parallel_for(threads, cells, [&](std::int64_t cell, int) {
    std::sort(sorted + first[cell], sorted + first[cell + 1]);
  });
  view_.sorted = sorted;
  view_.first = first;
}

std::int64_t PositiveOrder::bytes_of(std::int64_t positives) {
  constexpr std::int64_t kScore = sizeof(float), kPlace = sizeof(std::uint32_t);
  return (positives + kWindow) * kScore + (cells_for(positives) + 1) * kPlace;
}

std::uint64_t PositiveOrder::twice_wins(std::span<const float> negatives) const {
  return with_lanes(kWindow, [&]<int N>(Lanes<N>) { return twice_wins_by<N>(view_, negatives); });
}

}  // namespace rk
