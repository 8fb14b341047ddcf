// Detects a loss that no longer changes. If all embeddings collapse to one point, every batch has
// the same loss (a triplet loss equals its margin), and training cannot leave that point. The loss
// of a run that learns never stands still: the differences between batches alone are larger.
#pragma once

#include <cmath>
#include <cstdint>

namespace rk {

class StillLoss {
 public:
  static constexpr std::int64_t kSteps = 100;

  // Takes the loss of a step; returns true once per standstill, when the last kSteps losses hardly
  // differ.
  bool add(double loss) {
    constexpr double kHardly = 2e-3;
    if (!(std::abs(loss - value_) <= kHardly * std::abs(value_)) || loss == 0) {
      value_ = loss;
      steps_ = 1;
      return false;
    }
    return ++steps_ == kSteps;
  }

 private:
  double value_ = 0;  // the last steps_ losses hardly differ from it
  std::int64_t steps_ = 0;
};

}  // namespace rk
