#include "retrieval/passes/pair_curve.h"

#include <cmath>
#include <numeric>

namespace rk {
namespace {

constexpr double kStepsOfARate = 200;

}  // namespace

std::vector<PairCurvePoint> pair_curve(std::span<const double> positives,
                                       std::span<const double> negatives, double span) {
  const double all_positives = std::accumulate(positives.begin(), positives.end(), 0.0);
  const double all_negatives = std::accumulate(negatives.begin(), negatives.end(), 0.0);
  std::vector<PairCurvePoint> curve;
  if (all_positives == 0 || all_negatives == 0) return curve;
  const double width = 2 * span / static_cast<double>(positives.size());
  double positive = 0, negative = 0;
  double recall_step = -1, false_step = -1;  // of the last point kept
  for (std::size_t b = positives.size(); b-- > 0;) {
    if (positives[b] == 0 && negatives[b] == 0) continue;
    positive += positives[b];
    negative += negatives[b];
    const PairCurvePoint point{static_cast<double>(b) * width - span, negative / all_negatives,
                               positive / all_positives, positive / (positive + negative)};
    const double r = std::floor(point.recall * kStepsOfARate);
    const double f = std::floor(point.false_positive_rate * kStepsOfARate);
    const bool last = positive == all_positives && negative == all_negatives;
    if (r == recall_step && f == false_step && !last) continue;
    curve.push_back(point);
    recall_step = r;
    false_step = f;
  }
  return curve;
}

}  // namespace rk
