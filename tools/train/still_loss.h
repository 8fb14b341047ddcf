// A loss that no longer moves. Where all embeddings lie in one place, every batch has the same loss
// (a triplet's is its margin), and nothing leads away from there. That of a run that learns does
// not stand still: its batches alone differ by more.
#pragma once

#include <cmath>
#include <cstdint>

namespace rk {

class StillLoss {
 public:
  static constexpr std::int64_t kSteps = 100;

  // A step's loss; whether those of the last kSteps hardly differed, told once of each stand.
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
  double value_ = 0;  // from which the last steps_ losses hardly differ
  std::int64_t steps_ = 0;
};

}  // namespace rk
