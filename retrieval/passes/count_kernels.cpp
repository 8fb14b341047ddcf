#include "retrieval/passes/count_kernels.h"

#include "engine/base/integers.h"
#include "kernels/simd.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace rk {
namespace {

// Vector extensions of GCC and Clang, one register each: with two, a group of thresholds and its
// counts would not fit into the sixteen registers of AVX2.
#if defined(__AVX512F__)
constexpr std::size_t kWidth = 16;
#else
constexpr std::size_t kWidth = 8;
#endif
static_assert(kColumnLanes % kWidth == 0);
using Floats = float __attribute__((vector_size(kWidth * sizeof(float))));
using Ints = std::int32_t __attribute__((vector_size(kWidth * sizeof(std::int32_t))));

constexpr int kGroup = 4;  // thresholds compared with one load of scores

inline void load(const float* from, Floats& to) { std::memcpy(&to, from, sizeof(to)); }

inline std::int32_t sum(const Ints& lanes) {
  std::int32_t total = 0;
  for (std::size_t i = 0; i < kWidth; ++i) total += lanes[i];
  return total;
}

// A comparison yields -1 if it holds, so counts subtract it.
template <std::size_t kCount>
void count_group(std::span<const float> scores, const float* thresholds, std::int32_t* counts) {
  Floats t[kCount];
  Ints c[kCount] = {};
  for (std::size_t k = 0; k < kCount; ++k) t[k] = Floats{} + thresholds[k];
  const std::size_t whole = scores.size() / kWidth * kWidth;
  for (std::size_t j = 0; j < whole; j += kWidth) {
    Floats s;
    load(scores.data() + j, s);
    for (std::size_t k = 0; k < kCount; ++k) c[k] -= s >= t[k];
  }
  if (whole < scores.size()) {
    Floats s = Floats{} - std::numeric_limits<float>::infinity();
    std::memcpy(&s, scores.data() + whole, (scores.size() - whole) * sizeof(float));
    for (std::size_t k = 0; k < kCount; ++k) c[k] -= s >= t[k];
  }
  for (std::size_t k = 0; k < kCount; ++k) counts[k] += sum(c[k]);
}

// Counts kWidth columns; returns whether a score reached the highest of the thresholds.
template <std::size_t kCount>
bool count_columns(const float* scores, std::int64_t rows, std::int64_t stride,
                   const float* thresholds, std::int32_t* counts) {
  Floats t[kCount];
  Ints c[kCount] = {};
  for (std::size_t k = 0; k < kCount; ++k) load(thresholds + k * kColumnLanes, t[k]);
  for (std::int64_t i = 0; i < rows; ++i) {
    Floats s;
    load(scores + i * stride, s);
    for (std::size_t k = 0; k < kCount; ++k) c[k] -= s >= t[k];
  }
  for (std::size_t k = 0; k < kCount; ++k) {
    Ints total;
    std::memcpy(&total, counts + k * kColumnLanes, sizeof(total));
    total += c[k];
    std::memcpy(counts + k * kColumnLanes, &total, sizeof(total));
  }
  std::int32_t any = 0;
  for (std::size_t i = 0; i < kWidth; ++i) any |= c[0][i];
  return any != 0;
}

template <std::size_t kCount>
bool count_column_group(const float* scores, std::int64_t rows, std::int64_t stride,
                        const float* thresholds, std::int32_t* counts) {
  bool any = false;
  for (std::size_t lane = 0; lane < kColumnLanes; lane += kWidth) {
    any |= count_columns<kCount>(scores + lane, rows, stride, thresholds + lane, counts + lane);
  }
  return any;
}

// Calls f(first, count) for groups of thresholds from the lowest up, until f returns false: no
// score reached the highest of its group, so none reaches those above.
template <class F> void for_each_group(std::int64_t steps, F&& f) {
  std::int64_t end = steps;
  while (end > 0) {
    const std::int64_t count = end % kGroup == 0 ? kGroup : end % kGroup;
    if (!f(end - count, count)) return;
    end -= count;
  }
}

constexpr std::int64_t kSixteen = 16;

// How many of sixteen descending thresholds are above the score.
template <int kLanes> std::int64_t above(const float* thresholds, float score) {
  using L = Lanes<kLanes>;
  if constexpr (kLanes == 1) {
    return std::partition_point(thresholds, thresholds + kSixteen,
                                [&](float t) { return t > score; }) -
           thresholds;
  }
  int count = 0;
  for (std::int64_t i = 0; i < kSixteen; i += kLanes) {
    count += std::popcount(L::greater(L::load(thresholds + i), L::all(score)));
  }
  return count;
}

template <int kLanes>
void count_between_by(std::span<const float> scores, std::span<const float> thresholds,
                      std::int32_t* counts) {
  constexpr std::int64_t kPivots = kSixteen * kSixteen;
  constexpr std::size_t kBlock = 256;
  constexpr float kBelowAll = -std::numeric_limits<float>::infinity();
  const auto count = std::ssize(thresholds);
  const float* t = thresholds.data();
  // A pivot is the last threshold of `stride`, and every sixteenth of them a pivot of pivots.
  const std::int64_t stride = std::max(kSixteen, divide_up(count, kPivots));
  std::array<float, kPivots + kSixteen> pivots;
  std::array<float, kSixteen> pivots_of_pivots;
  pivots.fill(kBelowAll);
  pivots_of_pivots.fill(kBelowAll);
  for (std::int64_t i = 0; i < count / stride; ++i) {
    const float pivot = t[stride * (i + 1) - 1];
    pivots[static_cast<std::size_t>(i)] = pivot;
    if (i % kSixteen == kSixteen - 1) {
      pivots_of_pivots[static_cast<std::size_t>(i / kSixteen)] = pivot;
    }
  }

  // For each score, the number of thresholds above it: the index of the highest that it reaches.
  std::array<std::int64_t, kBlock> place;
  for (std::size_t begin = 0; begin < scores.size(); begin += kBlock) {
    const std::size_t n = std::min(kBlock, scores.size() - begin);
    for (std::size_t i = 0; i < n; ++i) {
      const float score = scores[begin + i];
      const std::int64_t group = kSixteen * above<kLanes>(pivots_of_pivots.data(), score);
      const std::int64_t pivot = group + above<kLanes>(pivots.data() + group, score);
      // All thresholds before `at` are above the score. A range that would reach beyond the last
      // threshold begins earlier instead.
      std::int64_t at = std::min(pivot * stride, count - stride);
      for (std::int64_t length = stride; length > kSixteen;) {
        const std::int64_t half = length / 2;
        at += t[at + half - 1] > score ? half : 0;
        length -= half;
      }
      at = std::min(at, count - kSixteen);
      place[i] = at + above<kLanes>(t + at, score);
    }
    // Apart from the search: near scores add to the same counter, which would wait for each other.
    for (std::size_t i = 0; i < n; ++i) {
      if (place[i] < count) ++counts[place[i]];
    }
  }
}

}  // namespace

void count_reaching(std::span<const float> scores, std::span<const float> thresholds,
                    std::int32_t* counts) {
  for_each_group(static_cast<std::int64_t>(thresholds.size()), [&](std::int64_t k, std::int64_t n) {
    const std::int32_t before = counts[k];
    const float* t = thresholds.data() + k;
    if (n == 4) {
      count_group<4>(scores, t, counts + k);
    } else if (n == 3) {
      count_group<3>(scores, t, counts + k);
    } else if (n == 2) {
      count_group<2>(scores, t, counts + k);
    } else {
      count_group<1>(scores, t, counts + k);
    }
    return counts[k] != before;
  });
}

void count_reaching_columns(const float* scores, std::int64_t rows, std::int64_t stride,
                            const float* thresholds, std::int64_t steps, std::int32_t* counts) {
  for_each_group(steps, [&](std::int64_t k, std::int64_t n) {
    const float* t = thresholds + k * kColumnLanes;
    std::int32_t* out = counts + k * kColumnLanes;
    if (n == 4) return count_column_group<4>(scores, rows, stride, t, out);
    if (n == 3) return count_column_group<3>(scores, rows, stride, t, out);
    if (n == 2) return count_column_group<2>(scores, rows, stride, t, out);
    return count_column_group<1>(scores, rows, stride, t, out);
  });
}

void count_between(std::span<const float> scores, std::span<const float> thresholds,
                   std::int32_t* counts) {
  with_lanes(kSixteen, [&]<int N>(Lanes<N>) { count_between_by<N>(scores, thresholds, counts); });
}

}  // namespace rk
