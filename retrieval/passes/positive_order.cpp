#include "retrieval/passes/positive_order.h"

#include "engine/base/error.h"
#include "kernels/simd.h"
#include "retrieval/passes/descending_sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace rk {
namespace {

constexpr std::size_t kWindow = 16;  // scores compared at once
constexpr std::size_t kEach = 2;     // positives to a cell, on average: few hold more than a window
// Beyond this a score minus the lowest might be rounded to zero before it is scaled.
constexpr double kMostScale = 1e30;

std::size_t cells_for(std::size_t positives) { return std::max(positives / kEach, std::size_t{1}); }

template <int kWidth>
std::uint64_t twice_wins_by(const ScoreOrder& order, std::span<const float> negatives) {
  using L = Lanes<kWidth>;
  constexpr std::size_t kBlock = 256;
  std::array<std::int32_t, kBlock> cells;
  std::uint64_t losses = 0;
  for (std::size_t begin = 0; begin < negatives.size(); begin += kBlock) {
    const std::size_t n = std::min(kBlock, negatives.size() - begin);
    const float* scores = negatives.data() + begin;
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) cells[i] = order.cell_of(scores[i]);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t from = order.first[cells[i]];
      if (kWidth == 1 || order.first[cells[i] + 1] - from > kWindow) {
        losses += 2 * order.count - order.twice_wins(scores[i]);
        continue;
      }
      // Scores of later cells, and the infinity behind the last, are above this one.
      const typename L::V score = L::all(scores[i]);
      int below = 0, above = 0;
      for (std::size_t k = 0; k < kWindow; k += kWidth) {
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

PositiveOrder::PositiveOrder(std::span<const float> positives)
    : sorted_(positives.begin(), positives.end()) {
  const std::size_t count = positives.size();
  expect(std::ssize(positives) <= kMostOrderedScores,
         "[positive_order] expected at most {} positives, got {}", kMostOrderedScores, count);
  DescendingSort()(sorted_);
  std::ranges::reverse(sorted_);
  const std::size_t cells = cells_for(count);
  view_ = {.count = static_cast<std::uint32_t>(count), .cells = static_cast<std::int32_t>(cells)};
  if (count > 0) {
    const double range = static_cast<double>(sorted_.back()) - static_cast<double>(sorted_.front());
    const double scale = static_cast<double>(cells) / range;
    view_.lowest = sorted_.front();
    view_.scale = scale <= kMostScale ? static_cast<float>(scale) : 0;
  }
  first_.reserve(cells + 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    first_.resize(std::max(first_.size(), static_cast<std::size_t>(view_.cell_of(sorted_[i])) + 1),
                  i);
  }
  first_.resize(cells + 1, static_cast<std::uint32_t>(count));
  sorted_.resize(count + kWindow, std::numeric_limits<float>::infinity());
  view_.sorted = sorted_.data();
  view_.first = first_.data();
}

std::int64_t PositiveOrder::most_bytes(std::int64_t positives) {
  if (positives > kMostOrderedScores) return 0;
  const auto count = static_cast<std::size_t>(positives);
  return static_cast<std::int64_t>((count + kWindow) * sizeof(float) +
                                   (cells_for(count) + 1) * sizeof(std::uint32_t));
}

std::uint64_t PositiveOrder::twice_wins(std::span<const float> negatives) const {
  return with_lanes(kWindow, [&]<int N>(Lanes<N>) { return twice_wins_by<N>(view_, negatives); });
}

}  // namespace rk
