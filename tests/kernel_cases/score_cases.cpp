// What an evaluation counts in a tile of scores.
#include "kernels/blocks/score_block.h"
#include "tests/kernel_cases/kernel_case.h"
#include "tests/support/random_seed.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace rk {
namespace {

struct Counted {
  std::vector<std::int32_t> counts;
  std::vector<std::uint64_t> fine, jsd, twice_wins;
  std::vector<double> sums;
};

struct Tile {
  int rows, columns;
  std::int64_t begin;  // gallery index of the first column
  int most;            // positives of a query, at most
  enum { kSpread, kClose, kSame, kLarge } scores;
  bool looks_up;
};

// A tile of made-up scores and queries, and what there is to count in it.
class CountingProblem {
 public:
  explicit CountingProblem(const Tile& tile, std::uint32_t seed)
      : tile_(tile), stride_((tile.columns + 63) / 64 * 64), random_(seed) {
    scores_.assign(at(tile.rows * stride_), std::numeric_limits<float>::quiet_NaN());
    for (int r = 0; r < tile.rows; ++r) {
      for (int c = 0; c < tile.columns; ++c) scores_[at(r * stride_ + c)] = score();
    }
    for (int r = 0; r < tile.rows; ++r) {
      const auto count = static_cast<std::int64_t>((random_.uniform() + 1) / 2 * (tile.most + 1));
      const auto begin = static_cast<std::int64_t>((random_.uniform() + 1) / 2 *
                                                   static_cast<double>(tile.begin + tile.columns));
      // At most one column of the class is removed; the class's columns may lie in the tile, partly
      // or not at all.
      queries_.push_back(
          {begin, begin + count + r % 2, begin, begin + r % 2, std::ssize(thresholds_), count});
      std::vector<float> own;
      for (std::int64_t i = 0; i < count; ++i) own.push_back(score());
      std::sort(own.begin(), own.end(), std::greater<>());
      thresholds_.insert(thresholds_.end(), own.begin(), own.end());
    }
    inverse_ = tile.scores == Tile::kLarge ? 1.0 / 20 : 1.0;
    if (!tile.looks_up) return;
    const auto positives = static_cast<std::uint32_t>((random_.uniform() + 1) / 2 * 300);
    for (std::uint32_t i = 0; i < positives; ++i) positives_.push_back(score());
    std::sort(positives_.begin(), positives_.end());
    order_ = {.count = positives,
              .cells = 1 + static_cast<int>(positives / 4),
              .lowest = -0.5F,
              .scale = 20};
    for (std::int32_t cell = 0; cell <= order_.cells; ++cell) {
      first_.push_back(static_cast<std::uint32_t>(
          std::ranges::count_if(positives_, [&](float p) { return order_.cell_of(p) < cell; })));
    }
  }

  // Counts by the definitions.
  Counted expected() const {
    Counted out = nothing();
    for (int r = 0; r < tile_.rows; ++r) {
      const ScoredQuery& query = queries_[at(r)];
      for (int c = 0; c < tile_.columns; ++c) {
        const std::int64_t column = tile_.begin + c;
        if (column >= query.class_begin && column < query.class_end) continue;
        const float s = scores_[at(r * stride_ + c)];
        const float* own = thresholds_.data() + query.first;
        const std::int64_t reached =
            std::count_if(own, own + query.count, [&](float t) { return s >= t; });
        if (query.count > CountScores::kCompareAtMost) {
          // Thresholds are descending: the score reaches the last `reached` of them.
          if (reached > 0) ++out.counts[at(query.first + query.count - reached)];
        } else {
          for (std::int64_t j = query.count - reached; j < query.count; ++j) {
            ++out.counts[at(query.first + j)];
          }
        }
        const auto wide = static_cast<double>(s);
        ++out.fine[at(bin_of(s))];
        if (nested()) {
          out.jsd.clear();
        } else {
          ++out.jsd[at(
              static_cast<std::int64_t>(std::clamp(std::floor((wide + 1.0) * 100), 0.0, 199.0)))];
        }
        out.sums[at(2 * r)] += wide;
        out.sums[at(2 * r + 1)] += wide * wide;
        if (!tile_.looks_up) continue;
        out.twice_wins[at(r)] += static_cast<std::uint64_t>(
            2 * std::ranges::count_if(positives_, [&](float p) { return p > s; }) +
            std::ranges::count(positives_, s));
      }
    }
    if (nested()) out.jsd.clear();
    return out;
  }

  Counted counted(bool ranks_alone) const {
    const Counted zero = nothing();
    const DeviceBuffer scores = DeviceBuffer::copy_of(scores_);
    const DeviceBuffer queries = DeviceBuffer::copy_of(queries_);
    const DeviceBuffer thresholds = DeviceBuffer::copy_of(thresholds_);
    const DeviceBuffer counts = DeviceBuffer::copy_of(zero.counts);
    const DeviceBuffer fine = DeviceBuffer::copy_of(zero.fine);
    const DeviceBuffer jsd = DeviceBuffer::copy_of(zero.jsd);
    const DeviceBuffer twice_wins = DeviceBuffer::copy_of(zero.twice_wins);
    const DeviceBuffer positives = DeviceBuffer::copy_of(positives_);
    const DeviceBuffer first = DeviceBuffer::copy_of(first_);
    const DeviceBuffer sums = DeviceBuffer::copy_of(zero.sums);
    CountScores kernel{.tile = {scores.as<float>(), stride_, tile_.rows, tile_.begin,
                                tile_.begin + tile_.columns, queries.as<ScoredQuery>()},
                       .thresholds = thresholds.as<float>(),
                       .counts = counts.as<std::int32_t>()};
    if (!ranks_alone) {
      kernel.to = {
          .inverse = inverse_, .fine = fine.as<std::uint64_t>(), .sums = sums.as<double>()};
      if (!nested()) kernel.to.jsd = jsd.as<std::uint64_t>();
      if (tile_.looks_up) {
        kernel.to.positives = order_;
        kernel.to.positives.sorted = positives.as<float>();
        kernel.to.positives.first = first.as<std::uint32_t>();
        kernel.to.twice_wins = twice_wins.as<std::uint64_t>();
      }
    }
    launch(kernel, nullptr);
    Counted out{.counts = counts.values<std::int32_t>(),
                .fine = fine.values<std::uint64_t>(),
                .jsd = jsd.values<std::uint64_t>(),
                .twice_wins = twice_wins.values<std::uint64_t>(),
                .sums = sums.values<double>()};
    if (nested()) out.jsd.clear();
    return out;
  }

 private:
  bool nested() const { return tile_.scores != Tile::kLarge; }
  Counted nothing() const {
    return {.counts = std::vector<std::int32_t>(thresholds_.size(), 0),
            .fine = std::vector<std::uint64_t>(kFineBins, 0),
            .jsd = std::vector<std::uint64_t>(200, 0),
            .twice_wins = std::vector<std::uint64_t>(at(std::int64_t{tile_.rows}), 0),
            .sums = std::vector<double>(at(std::int64_t{2} * tile_.rows), 0.0)};
  }
  std::int32_t bin_of(float s) const {
    const double bin = std::floor((static_cast<double>(s) * inverse_ + 1.0) * 100.0 * 256.0);
    return static_cast<std::int32_t>(std::clamp(bin, 0.0, kFineBins - 1.0));
  }
  // On a grid, so that many scores are equal, also to thresholds.
  float score() {
    const double grid = std::round(random_.uniform() * 500) / 500;
    switch (tile_.scores) {
      case Tile::kSpread: return static_cast<float>(grid);
      case Tile::kClose: return static_cast<float>(0.7 + grid / 20);
      case Tile::kSame: return 0.25F;
      case Tile::kLarge: return static_cast<float>(20 * grid);
    }
    return 0;
  }

  Tile tile_;
  std::int64_t stride_;
  MadeUp random_;
  double inverse_ = 1;
  std::vector<float> scores_, thresholds_;
  std::vector<float> positives_;  // ascending
  ScoreOrder order_;              // without addresses
  std::vector<std::uint32_t> first_;
  std::vector<ScoredQuery> queries_;
};

std::vector<Checked> count_scores(const Tile& tile, std::uint32_t seed) {
  const CountingProblem problem(tile, seed);
  const Counted expected = problem.expected(), got = problem.counted(false);
  return {{"counts", widened(got.counts), widened(expected.counts), 0, 0},
          {"ranks alone", widened(problem.counted(true).counts), widened(expected.counts), 0, 0},
          {"fine bins", widened(got.fine), widened(expected.fine), 0, 0},
          {"bins of the JSD", widened(got.jsd), widened(expected.jsd), 0, 0},
          {"wins", widened(got.twice_wins), widened(expected.twice_wins), 0, 0},
          // Sums in double of scores of either sign, added in another order.
          {"sums", got.sums, expected.sums, 1e-12, 1e-10}};
}

}  // namespace

void add_score_cases(std::vector<KernelCase>& cases) {
  const auto seed = static_cast<std::uint32_t>(random_seed());
  MadeUp random(seed);
  const auto below = [&](int end) { return static_cast<int>((random.uniform() + 1) / 2 * end); };
  for (int drawn = 0; drawn < 60; ++drawn) {
    // Column counts at the edges of a pack, of a block's threads and packs, of a tile, and of what
    // a 16-bit counter holds.
    const int columns = drawn % 20 == 0   ? 8192 - below(9)
                        : drawn % 20 == 1 ? 65535 - below(70)
                                          : 1 + below(1200);
    const Tile tile{
        .rows = columns > 60000 ? 1 : 1 + below(19),
        .columns = columns,
        .begin = below(2) * below(5000),
        .most = drawn % 3 == 0   ? 150
                : drawn % 3 == 1 ? 20
                                 : 4,
        .scores = drawn % 20 < 2 ? Tile::kSame : static_cast<decltype(Tile::scores)>(below(4)),
        .looks_up = below(2) == 1};
    const std::uint32_t own = seed + static_cast<std::uint32_t>(drawn);
    cases.push_back({fmt::format("count_scores_{}_{}x{}", drawn, tile.rows, tile.columns),
                     [=] { return count_scores(tile, own); }});
  }
}

}  // namespace rk
