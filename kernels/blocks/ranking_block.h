// Average precision of long rankings and its black-box gradient on a GPU: the definition of
// losses/scores/ranking.h, on `segments` rankings of `items` scores each, all at once. Stable sorts
// (kernels/cuda/sort.h) with these kernels around them:
//   KeyScores          the key of every score, with its segment in the upper bits
//   -- sort --
//   CountFlags, SumFlags, WriteRanks   the number of positives above each place, and the place of
//                      each positive
//   MovePositives      1 - precision of every positive, and the value it moves to
//   -- sort of the positives by what rounding that value to float cut off --
//   KeyMoved           keys of the moved values
//   -- stable sort of the positives by these --
//   NegativeGradients, PositiveGradients   how far each rank moves, by binary search in the order
//                      of the others
//   SumLostPrecision   the loss
// Item j of segment s has score and target scores[j * segments + s]; its number is s * items + j.
// Equal scores rank by index. Places are numbers of 32 bits: segments * items < 2^31.
#pragma once

#include "kernels/block_team.h"
#include "kernels/descending_key.h"

#include <cstdint>
#include <type_traits>

namespace rk {

// What is ranked, in device memory, and where its gradient goes.
struct RankingInput {
  std::int64_t items = 0;  // of a segment
  std::int64_t segments = 0;
  std::int64_t positives = 0;  // of all segments
  double lambda = 0;
  double margin = 0;
  double weight = 0;  // d(loss)/d(1 - AP of a segment)

  const float* scores = nullptr;          // [items, segments]
  const std::uint8_t* targets = nullptr;  // [items, segments]
  const std::uint32_t* own = nullptr;     // [positives], their numbers, ascending
  float* grad = nullptr;                  // [items, segments]
  bool accumulate = false;                // add to grad and to the loss
};

// Key: uint32 for one segment, uint64 for more.
template <class Key> struct RankingArrays : RankingInput {
  Key* keys = nullptr;             // [all], before the sort and after it
  std::uint32_t* order = nullptr;  // [all], indices within the segment, and kPositive
  std::int32_t* above = nullptr;   // [all + 1], positives before a place
  std::int32_t* place = nullptr;   // [all], of positives, by number
  float* moved_value = nullptr;    // [all], v' of positives, rounded, by number
  float* moved_rest = nullptr;     // [all], v' - moved_value
  Key* moved_keys = nullptr;       // [positives]
  std::uint32_t* moved = nullptr;  // [positives], indices within the segment

  static constexpr std::uint32_t kPositive = std::uint32_t{1} << 31;

  RK_BOTH std::int64_t all() const { return items * segments; }
  RK_FN RK_INLINE std::int64_t element(std::int64_t segment, std::int64_t index) const {
    return index * segments + segment;
  }
  RK_FN RK_INLINE std::int64_t positives_of(std::int64_t segment) const {
    return above[(segment + 1) * items] - above[segment * items];
  }
  RK_FN RK_INLINE static Key key(std::int64_t segment, float value) {
    const std::uint32_t low = descending_key(value);
    if constexpr (sizeof(Key) == 4) {
      return low;
    } else {
      return static_cast<Key>(segment) << 32 | low;
    }
  }
  RK_FN RK_INLINE static std::int64_t segment_of(Key key) {
    if constexpr (sizeof(Key) == 4) {
      return 0;
    } else {
      return static_cast<std::int64_t>(key >> 32);
    }
  }
  RK_FN RK_INLINE void put(std::int64_t element, std::int64_t moved_by) const {
    const auto scale = static_cast<float>(1 / (static_cast<double>(items) * lambda));
    const float value = static_cast<float>(moved_by) * scale;
    grad[element] = accumulate ? grad[element] + value : value;
  }
};

// for_share() calls f(i) for this block's share, kRankingNumbers of the numbers i < count.
inline constexpr int kRankingNumbers = 2048;
RK_BOTH inline int ranking_blocks(std::int64_t count) {
  return static_cast<int>(divide_up(count, kRankingNumbers));
}
template <class Block> struct RankingShare {
  RK_FN RankingShare(const Block& block, std::int64_t count)
      : begin(static_cast<std::int64_t>(block.index()) * kRankingNumbers),
        size(static_cast<int>(count - begin < kRankingNumbers ? count - begin : kRankingNumbers)) {}
  std::int64_t begin;
  int size;
};
template <class Block, class F>
RK_FN RK_INLINE void for_share(const Block& block, std::int64_t count, F&& f) {
  const RankingShare<Block> share(block, count);
  team_of(block).for_each(share.size, [&](int i) { f(share.begin + i); });
}

template <class Key> struct KeyScores {
  RankingArrays<Key> at;

  int blocks() const { return ranking_blocks(at.all()); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    for_share(block, at.all(), [&](std::int64_t i) {
      const std::int64_t segment = i / at.items;
      const std::int64_t index = i - segment * at.items;
      const std::int64_t element = at.element(segment, index);
      const bool positive = at.targets[element] != 0;
      const double half = at.margin / 2;
      const double v = static_cast<double>(at.scores[element]) + (positive ? -half : half);
      at.keys[i] = at.key(segment, static_cast<float>(v));
      at.order[i] = static_cast<std::uint32_t>(index) | (positive ? at.kPositive : 0);
    });
  }
};

// counts[b]: positives among the places of block b.
template <class Key> struct CountFlags {
  RankingArrays<Key> at;
  std::int32_t* counts = nullptr;

  int blocks() const { return ranking_blocks(at.all()); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const RankingShare<Block> share(block, at.all());
    const auto team = team_of(block);
    const int count = team.sum(
        share.size, [&](int i) { return (at.order[share.begin + i] & at.kPositive) != 0 ? 1 : 0; });
    team.for_each(1, [&](int) { counts[block.index()] = count; });
  }
};

// Replaces counts[b] by the sum of the counts before b: one block, each thread takes a stretch.
struct SumFlags {
  int count = 0;
  std::int32_t* counts = nullptr;

  template <int kThreads> struct Shared { std::int32_t sums[static_cast<std::size_t>(kThreads)]; };
  int blocks() const { return 1; }
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    const int stretch = (count + Block::kThreads - 1) / Block::kThreads;
    const int begin = block.thread() * stretch;
    const int end = begin + stretch < count ? begin + stretch : count;
    std::int32_t sum = 0;
    for (int b = begin; b < end; ++b) sum += counts[b];
    shared.sums[block.thread()] = sum;
    block.sync();
    std::int32_t before = 0;
    for (int t = 0; t < block.thread(); ++t) before += shared.sums[t];
    for (int b = begin; b < end; ++b) {
      const std::int32_t own = counts[b];
      counts[b] = before;
      before += own;
    }
  }
};

template <class Key> struct WriteRanks {
  RankingArrays<Key> at;
  const std::int32_t* counts = nullptr;  // positives in all blocks before

  template <int kThreads> struct Shared { std::int32_t sums[static_cast<std::size_t>(kThreads)]; };
  int blocks() const { return ranking_blocks(at.all()); }
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    const RankingShare<Block> share(block, at.all());
    constexpr int kStretch = (kRankingNumbers + Block::kThreads - 1) / Block::kThreads;
    const int begin = block.thread() * kStretch;
    const int end = begin + kStretch < share.size ? begin + kStretch : share.size;
    std::int32_t sum = 0;
    for (int i = begin; i < end; ++i) {
      sum += (at.order[share.begin + i] & at.kPositive) != 0 ? 1 : 0;
    }
    shared.sums[block.thread()] = sum;
    block.sync();
    std::int32_t before = counts[block.index()];
    for (int t = 0; t < block.thread(); ++t) before += shared.sums[t];
    for (int i = begin; i < end; ++i) {
      const std::int64_t here = share.begin + i;
      at.above[here] = before;
      const std::uint32_t item = at.order[here];
      if ((item & at.kPositive) == 0) continue;
      ++before;
      const std::int64_t segment = here / at.items;
      at.place[segment * at.items + (item & ~at.kPositive)] = static_cast<std::int32_t>(here);
    }
    // The thread with the last place writes the total number of positives.
    if (end > begin && share.begin + end == at.all()) at.above[at.all()] = before;
  }
};

// partial[b]: the sum over the positives of block b of 1 - precision, (negatives above)/(rank),
// weighted by their share in the mean.
template <class Key> struct MovePositives {
  RankingArrays<Key> at;
  double* partial = nullptr;

  int blocks() const { return ranking_blocks(at.positives); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const RankingShare<Block> own(block, at.positives);
    const auto team = team_of(block);
    const double sum = team.sum(own.size, [&](int k) {
      const std::int64_t number = at.own[own.begin + k];
      const std::int64_t segment = number / at.items;
      const std::int64_t first = segment * at.items;
      const std::int64_t here = at.place[number];
      const double share = 1 / static_cast<double>(at.positives_of(segment));
      const double rank = static_cast<double>(here - first + 1);
      // A quotient of whole numbers, so that equal values are bitwise equal and items stay tied.
      const auto among = static_cast<double>(at.above[here] - at.above[first] + 1);
      const double quotient = among * static_cast<double>(at.items) / (rank * rank);
      const double factor = at.lambda * at.weight * share;
      const auto score = static_cast<double>(at.scores[at.element(segment, number - first)]);
      // Moves from the rounded value that was ranked, as losses/scores/ranking.cpp does.
      const double moved =
          static_cast<double>(static_cast<float>(score - at.margin / 2)) + factor * quotient;
      at.moved_value[number] = static_cast<float>(moved);
      at.moved_rest[number] =
          static_cast<float>(moved - static_cast<double>(at.moved_value[number]));
      at.moved_keys[own.begin + k] = at.key(segment, at.moved_rest[number]);
      at.moved[own.begin + k] = static_cast<std::uint32_t>(number - first);
      return static_cast<double>((here - first) - (at.above[here] - at.above[first])) / rank *
             share;
    });
    team.for_each(1, [&](int) { partial[block.index()] = sum; });
  }
};

template <class Key> struct KeyMoved {
  RankingArrays<Key> at;

  int blocks() const { return ranking_blocks(at.positives); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    for_share(block, at.positives, [&](std::int64_t m) {
      const std::int64_t segment = at.segment_of(at.moved_keys[m]);
      at.moved_keys[m] = at.key(segment, at.moved_value[segment * at.items + at.moved[m]]);
    });
  }
};

// Binary search in [begin, end), whose keys ascend: returns the first place that is not above. A
// place with a smaller key is above; for places with the same `key`, is_above(place) decides, and
// holds for a prefix of them.
template <class Key, class F>
RK_FN RK_INLINE std::int64_t first_not_above(const Key* keys, std::int64_t begin, std::int64_t end,
                                             Key key, F&& is_above) {
  while (begin < end) {
    const std::int64_t middle = begin + (end - begin) / 2;
    const Key there = keys[middle];
    if (there < key || (there == key && is_above(middle))) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// A negative's rank changes by the number of positives that pass it.
template <class Key> struct NegativeGradients {
  RankingArrays<Key> at;

  int blocks() const { return ranking_blocks(at.all()); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    for_share(block, at.all(), [&](std::int64_t here) {
      const std::uint32_t index = at.order[here];
      if ((index & at.kPositive) != 0) return;
      const std::int64_t segment = here / at.items;
      const std::int64_t first = at.above[segment * at.items];
      const std::int64_t end = at.above[(segment + 1) * at.items];
      const std::int64_t passed =
          first_not_above(at.moved_keys, first, end, at.keys[here], [&](std::int64_t m) {
            const float rest = at.moved_rest[segment * at.items + at.moved[m]];
            return rest > 0 || (rest == 0 && at.moved[m] < index);
          });
      at.put(at.element(segment, index), passed - at.above[here]);
    });
  }
};

template <class Key> struct PositiveGradients {
  RankingArrays<Key> at;

  int blocks() const { return ranking_blocks(at.positives); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    for_share(block, at.positives, [&](std::int64_t m) {
      const Key key = at.moved_keys[m];
      const std::uint32_t index = at.moved[m];
      const std::int64_t segment = at.segment_of(key);
      const std::int64_t first = segment * at.items;
      const float rest = at.moved_rest[first + index];
      const std::int64_t here =
          first_not_above(at.keys, first, first + at.items, key, [&](std::int64_t place) {
            return rest < 0 || (rest == 0 && (at.order[place] & ~at.kPositive) < index);
          });
      const std::int64_t negatives = (here - first) - (at.above[here] - at.above[first]);
      const std::int64_t moved_to = first + (m - at.above[first]) + negatives;
      at.put(at.element(segment, index), moved_to - at.place[first + index]);
    });
  }
};

// loss[0] = share * the sum of `partial`, or loss[0] += that with accumulate.
struct SumLostPrecision {
  const double* partial = nullptr;
  int count = 0;
  double share = 0;
  bool accumulate = false;
  double* loss = nullptr;

  int blocks() const { return 1; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const auto team = team_of(block);
    const double sum = team.sum(count, [&](int b) { return partial[b]; });
    team.for_each(1, [&](int) {
      const double value = share * sum;
      *loss = accumulate ? *loss + value : value;
    });
  }
};

}  // namespace rk
