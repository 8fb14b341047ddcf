// All positive scores of an evaluation, in ascending order, and how often negatives lose to them:
// the exact AUC, P(positive > negative) + P(equal) / 2, at the price of one look at a table and one
// comparison of vectors for most pairs. With more positives than the caches hold, both read main
// memory.
#pragma once

#include "engine/device/buffer.h"
#include "kernels/score_order.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace rk {

class PositiveOrder {
 public:
  static constexpr std::int64_t kMost = std::int64_t{1} << 28;  // 1.5 GiB

  // `positives`: finite, in any order, at most kMost.
  PositiveOrder(int threads, std::span<const float> positives);
  PositiveOrder(const PositiveOrder&) = delete;  // view() points into this one
  PositiveOrder& operator=(const PositiveOrder&) = delete;

  // The sum over `negatives`, which are finite, of
  // 2 x (positives that score higher) + (positives that score equally).
  std::uint64_t twice_wins(std::span<const float> negatives) const;

  const ScoreOrder& view() const { return view_; }
  // The arrays of view(), the first with a vector of infinity behind the last score.
  std::span<const float> sorted() const { return values<float>(sorted_); }
  std::span<const std::uint32_t> first() const { return values<std::uint32_t>(first_); }
  static std::int64_t bytes_of(std::int64_t positives);  // bytes() of an order of so many
  std::size_t bytes() const { return sorted_.bytes() + first_.bytes(); }

 private:
  template <class T> static std::span<const T> values(const Buffer& buffer) {
    return {buffer.as<const T>(), buffer.bytes() / sizeof(T)};
  }

  Buffer sorted_, first_;
  ScoreOrder view_;
};

}  // namespace rk
