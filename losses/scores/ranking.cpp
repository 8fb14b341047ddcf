#include "losses/scores/ranking.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "kernels/descending_key.h"

#include <algorithm>

namespace rk {
namespace {

constexpr std::uint32_t kPositive = std::uint32_t{1} << 31;
constexpr std::int64_t kLongest = std::int64_t{1} << 31;
// Below this, starting threads costs more than it saves.
constexpr std::int64_t kWorthThreads = 1 << 15;

}  // namespace

template <class S> void Ranking<S>::allocate(const Context& context, std::int64_t n) {
  expect(n < kLongest, "[ranking] expected fewer than 2^31 scores, got {}", n);
  threads_ = context.threads();
  for (Buffer& buffer : keys_) buffer = Buffer::of<Key>(n);
  for (Buffer& buffer : items_) buffer = Buffer::of<std::uint32_t>(n);
  places_ = Buffer::of<std::uint32_t>(n);
  residuals_ = Buffer::of<S>(n);
  counts_ = Buffer::of<std::int64_t>(radix_counts(threads_));
}

template <class S> std::int64_t Ranking<S>::bytes() const {
  std::size_t total = places_.bytes() + residuals_.bytes() + counts_.bytes();
  for (int i = 0; i < 3; ++i) total += keys_[i].bytes() + items_[i].bytes();
  return static_cast<std::int64_t>(total);
}

template <class S>
double Ranking<S>::run(const Context& context, const Params& params, std::int64_t n,
                       std::int64_t stride, const S* scores, const std::uint8_t* targets,
                       double weight, S* grad) {
  const int threads = n < kWorthThreads ? 1 : std::min(threads_, context.threads());
  const Problem problem{threads, n, stride, scores, targets, params.margin / 2, grad};
  const Items order = rank(problem);
  std::int64_t positives = 0;
  for (std::int64_t i = 0; i < n; ++i) positives += (order.items[i] & kPositive) != 0;
  const double share = 1 / static_cast<double>(positives);
  const double lost = move_positives(problem, order, params.lambda * weight * share);
  const Items moved = sort_moved(problem, positives, other(order, 0, 1));
  write_gradient(problem, order, moved, positives,
                 static_cast<S>(1 / (static_cast<double>(n) * params.lambda)));
  return lost * share;
}

// All items by descending v.
template <class S> typename Ranking<S>::Items Ranking<S>::rank(const Problem& p) {
  const Items all = items(0);
  parallel_for(p.threads, p.n, [&](std::int64_t i, int) {
    const bool positive = p.targets[i * p.stride] != 0;
    const double v = static_cast<double>(p.scores[i * p.stride]) + (positive ? -p.half : p.half);
    all.keys[i] = descending_key(static_cast<S>(v));
    all.items[i] = static_cast<std::uint32_t>(i) | (positive ? kPositive : 0);
  });
  return radix_sort(p.threads, p.n, all, items(1), counts_.as<std::int64_t>());
}

// Positives from the top: returns the sum over them of 1 - precision. Notes their places, and where
// each moves to: grad holds the rounded v' until ranks replace it.
template <class S>
double Ranking<S>::move_positives(const Problem& p, const Items& order, double factor) {
  auto* places = places_.as<std::uint32_t>();
  auto* residuals = residuals_.as<S>();
  double lost = 0;
  std::int64_t among = 0;
  for (std::int64_t i = 0; i < p.n; ++i) {
    if ((order.items[i] & kPositive) == 0) continue;
    ++among;
    const double place = static_cast<double>(i + 1);
    lost += static_cast<double>(i + 1 - among) / place;
    const std::int64_t item = order.items[i] & ~kPositive;
    const std::int64_t index = item * p.stride;
    places[item] = static_cast<std::uint32_t>(i);
    // A quotient of whole numbers, so that equal values are bitwise equal and items stay tied.
    const double quotient = static_cast<double>(among) * static_cast<double>(p.n) / (place * place);
    // Start from the rounded score that was sorted, so that rounding cannot cost a positive its
    // place.
    const auto ranked = static_cast<S>(static_cast<double>(p.scores[index]) - p.half);
    const double moved = static_cast<double>(ranked) + factor * quotient;
    p.grad[index] = static_cast<S>(moved);
    residuals[item] = static_cast<S>(moved - static_cast<double>(p.grad[index]));
  }
  return lost;
}

// Sorts positives by the rounded v' (stably, after collecting them by index), then those of equal
// rounded values by the residual and the index.
template <class S>
typename Ranking<S>::Items Ranking<S>::sort_moved(const Problem& p, std::int64_t positives,
                                                  const Items& room) {
  const auto* residuals = residuals_.as<S>();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < p.n; ++i) {
    if (p.targets[i * p.stride] == 0) continue;
    room.keys[count] = descending_key(p.grad[i * p.stride]);
    room.items[count++] = static_cast<std::uint32_t>(i);
  }
  const Items moved = radix_sort(p.threads, positives, room, items(2), counts_.as<std::int64_t>());
  for (std::int64_t begin = 0, end = 0; begin < positives; begin = end) {
    for (end = begin + 1; end < positives && moved.keys[end] == moved.keys[begin];) ++end;
    std::sort(moved.items + begin, moved.items + end, [&](std::uint32_t x, std::uint32_t y) {
      return residuals[x] > residuals[y] || (residuals[x] == residuals[y] && x < y);
    });
  }
  return moved;
}

// Writes how far each rank changes, times `scale`: a negative's by the positives that pass it, a
// positive's by the negatives above its new place.
template <class S>
void Ranking<S>::write_gradient(const Problem& p, const Items& order, const Items& moved,
                                std::int64_t positives, S scale) {
  const auto* places = places_.as<std::uint32_t>();
  const auto* residuals = residuals_.as<S>();
  // Above every positive in its new place.
  std::uint32_t* negatives_above = other(moved, order.keys == items(0).keys ? 1 : 0, 2).items;

  const auto is_above = [&](std::int64_t m, std::int64_t i) {
    const Key key = moved.keys[m];
    if (key != order.keys[i]) return key < order.keys[i];
    const S residual = residuals[moved.items[m]];
    return residual > 0 || (residual == 0 && moved.items[m] < order.items[i]);
  };
  // Positives whose new place is above a negative at place i of the first order.
  const auto passed_before = [&](std::int64_t place) {
    while (place > 0 && (order.items[place - 1] & kPositive) != 0) --place;
    if (place == 0) return std::int64_t{0};
    std::int64_t low = 0;
    std::int64_t high = positives;
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
  parallel_ranges(p.threads, p.n, [&](std::int64_t begin, std::int64_t end, int) {
    std::int64_t before = 0;  // positives above in the first order
    for (std::int64_t i = 0; i < begin; ++i) before += (order.items[i] & kPositive) != 0;
    std::int64_t passed = passed_before(begin);
    for (std::int64_t i = begin; i < end; ++i) {
      if ((order.items[i] & kPositive) != 0) {
        ++before;
        continue;
      }
      for (; passed < positives && is_above(passed, i); ++passed) {
        negatives_above[passed] = static_cast<std::uint32_t>(i - before);
      }
      p.grad[static_cast<std::int64_t>(order.items[i]) * p.stride] =
          static_cast<S>(passed - before) * scale;
    }
  });
  for (std::int64_t m = passed_before(p.n); m < positives; ++m) {
    negatives_above[m] = static_cast<std::uint32_t>(p.n - positives);
  }
  parallel_for(p.threads, positives, [&](std::int64_t m, int) {
    const std::int64_t item = moved.items[m];
    const std::int64_t place = m + static_cast<std::int64_t>(negatives_above[m]);
    p.grad[item * p.stride] =
        static_cast<S>(place - static_cast<std::int64_t>(places[item])) * scale;
  });
}

template class Ranking<float>;
template class Ranking<double>;

}  // namespace rk
