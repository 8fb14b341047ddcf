#include "losses/frame/ranking.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"

#include <algorithm>

namespace rk {
namespace {

constexpr std::uint32_t kPositive = std::uint32_t{1} << 31;
constexpr std::int64_t kLongest = std::int64_t{1} << 31;
// Below this, starting threads costs more than it saves.
constexpr std::int64_t kWorthThreads = 1 << 15;

}  // namespace

template <class S> void Ranking<S>::plan(const Context& context, std::int64_t n) {
  expect(n < kLongest, "[ranking] expected fewer than 2^31 scores, got {}", n);
  threads_ = context.threads();
  for (Buffer& buffer : keys_) buffer = Buffer::of<Key>(n);
  for (Buffer& buffer : items_) buffer = Buffer::of<std::uint32_t>(n);
  places_ = Buffer::of<std::uint32_t>(n);
  rests_ = Buffer::of<S>(n);
  counts_ = Buffer::of<std::int64_t>(radix_counts(threads_));
}

template <class S> std::int64_t Ranking<S>::bytes() const {
  std::size_t total = places_.bytes() + rests_.bytes() + counts_.bytes();
  for (int i = 0; i < 3; ++i) total += keys_[i].bytes() + items_[i].bytes();
  return static_cast<std::int64_t>(total);
}

template <class S>
double Ranking<S>::run(const Context& context, const Params& params, std::int64_t n,
                       std::int64_t stride, const S* scores, const std::uint8_t* targets,
                       double weight, S* grad) {
  const int threads = n < kWorthThreads ? 1 : std::min(threads_, context.threads());
  const double half = params.margin / 2;
  Items a = items(0);
  parallel_for(threads, n, [&](std::int64_t i, int) {
    const bool positive = targets[i * stride] != 0;
    const double v = static_cast<double>(scores[i * stride]) + (positive ? -half : half);
    a.keys[i] = descending_key(static_cast<S>(v));
    a.items[i] = static_cast<std::uint32_t>(i) | (positive ? kPositive : 0);
  });
  const Items order = radix_sort(threads, n, a, items(1), counts_.as<std::int64_t>());
  a = order.keys == items(0).keys ? items(1) : items(0);  // the buffer that is free again

  // Positives from the top: AP, and where each moves to. grad holds v' until ranks replace it.
  auto* places = places_.as<std::uint32_t>();  // of positives in the first order, by index
  auto* rests = rests_.as<S>();                // of positives, by index
  std::int64_t positives = 0;
  for (std::int64_t i = 0; i < n; ++i) positives += (order.items[i] & kPositive) != 0;
  const double share = 1 / static_cast<double>(positives);
  const double factor = params.lambda * weight * share;
  double lost = 0;  // sum over positives of 1 - precision
  std::int64_t among = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if ((order.items[i] & kPositive) == 0) continue;
    ++among;
    const double rank = static_cast<double>(i + 1);
    lost += static_cast<double>(i + 1 - among) / rank;
    const std::int64_t item = order.items[i] & ~kPositive;
    const std::int64_t index = item * stride;
    places[item] = static_cast<std::uint32_t>(i);
    // A quotient of whole numbers, so that equal values are bitwise equal and items stay tied.
    const double quotient = static_cast<double>(among) * static_cast<double>(n) / (rank * rank);
    // Start from the rounded score that was sorted, so that rounding cannot cost a positive its
    // place.
    const auto ranked = static_cast<S>(static_cast<double>(scores[index]) - half);
    const double moved = static_cast<double>(ranked) + factor * quotient;
    grad[index] = static_cast<S>(moved);
    rests[item] = static_cast<S>(moved - static_cast<double>(grad[index]));
  }

  // Sorts positives by the rounded v' (stably, after collecting them by index), then those of equal
  // rounded values by the remainder and the index.
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (targets[i * stride] == 0) continue;
    a.keys[count] = descending_key(grad[i * stride]);
    a.items[count++] = static_cast<std::uint32_t>(i);
  }
  const Items moved = radix_sort(threads, count, a, items(2), counts_.as<std::int64_t>());
  for (std::int64_t begin = 0, end = 0; begin < count; begin = end) {
    for (end = begin + 1; end < count && moved.keys[end] == moved.keys[begin];) ++end;
    std::sort(moved.items + begin, moved.items + end, [&](std::uint32_t x, std::uint32_t y) {
      return rests[x] > rests[y] || (rests[x] == rests[y] && x < y);
    });
  }
  const Items room = moved.keys == a.keys ? items(2) : a;
  std::uint32_t* negatives_above = room.items;  // above every positive in its new place

  // A negative's rank changes by the positives that pass it. `passed`: positives whose new place is
  // above a negative at place i of the first order.
  const auto is_above = [&](std::int64_t m, std::int64_t i) {
    const Key key = moved.keys[m];
    if (key != order.keys[i]) return key < order.keys[i];
    const S rest = rests[moved.items[m]];
    return rest > 0 || (rest == 0 && moved.items[m] < order.items[i]);
  };
  const auto passed_before = [&](std::int64_t place) {
    while (place > 0 && (order.items[place - 1] & kPositive) != 0) --place;
    if (place == 0) return std::int64_t{0};
    std::int64_t low = 0;
    std::int64_t high = count;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (is_above(middle, place - 1)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const S scale = static_cast<S>(1 / (static_cast<double>(n) * params.lambda));
  parallel_ranges(threads, n, [&](std::int64_t begin, std::int64_t end, int) {
    std::int64_t before = 0;  // positives above in the first order
    for (std::int64_t i = 0; i < begin; ++i) before += (order.items[i] & kPositive) != 0;
    std::int64_t passed = passed_before(begin);
    for (std::int64_t i = begin; i < end; ++i) {
      if ((order.items[i] & kPositive) != 0) {
        ++before;
        continue;
      }
      for (; passed < count && is_above(passed, i); ++passed) {
        negatives_above[passed] = static_cast<std::uint32_t>(i - before);
      }
      grad[static_cast<std::int64_t>(order.items[i]) * stride] =
          static_cast<S>(passed - before) * scale;
    }
  });
  for (std::int64_t m = passed_before(n); m < count; ++m) {
    negatives_above[m] = static_cast<std::uint32_t>(n - count);
  }
  parallel_for(threads, count, [&](std::int64_t m, int) {
    const std::int64_t item = moved.items[m];
    const std::int64_t place = m + static_cast<std::int64_t>(negatives_above[m]);
    grad[item * stride] = static_cast<S>(place - static_cast<std::int64_t>(places[item])) * scale;
  });
  return lost * share;
}

template class Ranking<float>;
template class Ranking<double>;

}  // namespace rk
