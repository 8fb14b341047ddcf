// All positive scores of an evaluation, in ascending order, and how often negatives lose to them:
// the exact AUC, P(positive > negative) + P(equal) / 2, at the price of one look at a table and one
// comparison of vectors for most pairs.
#pragma once

#include "kernels/score_order.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rk {

class PositiveOrder {
 public:
  // `positives`: finite, in any order, at most kMostOrderedScores.
  explicit PositiveOrder(std::span<const float> positives);
  PositiveOrder(const PositiveOrder&) = delete;  // view() points into this one
  PositiveOrder& operator=(const PositiveOrder&) = delete;

  // The sum over `negatives`, which are finite, of twice the number of positives that score higher
  // and the number of those that score equally.
  std::uint64_t twice_wins(std::span<const float> negatives) const;

  const ScoreOrder& view() const { return view_; }
  const std::vector<float>& sorted() const { return sorted_; }
  const std::vector<std::uint32_t>& first() const { return first_; }
  // What bytes() is at most for so many positives; 0 where they are too many.
  static std::int64_t most_bytes(std::int64_t positives);
  std::size_t bytes() const {
    return sorted_.size() * sizeof(float) + first_.size() * sizeof(std::uint32_t);
  }

 private:
  std::vector<float> sorted_;         // a vector of infinity follows the last
  std::vector<std::uint32_t> first_;  // by cell
  ScoreOrder view_;
};

}  // namespace rk
