#include "retrieval/passes/pair_curve.h"

#include "kernels/score_bins.h"

#include <cmath>
#include <numeric>

namespace rk {
namespace {

constexpr double kStepsOfARate = 200;
// No score of the outermost bin is so far outside: rows that were normalised in float32 have
// products slightly above 1.
constexpr double kOutside = 1.001;

// The least score of a fine bin. Its edge, computed, may be above scores of the bin: they were
// rounded when their bin was computed.
double least_score(std::int32_t bin, double inverse) {
  const double width = 2 / (kFineBins * inverse);
  const double edge = bin * width - 1 / inverse;
  if (bin == 0) return edge * kOutside;
  double below = edge - width, least = edge + width;
  for (;;) {
    const double middle = below + (least - below) / 2;
    if (middle <= below || middle >= least) return least;
    double& end = fine_bin(middle * inverse) < bin ? below : least;
    end = middle;
  }
}

}  // namespace

std::vector<PairCurvePoint> pair_curve(std::span<const double> positives,
                                       std::span<const double> negatives, double inverse) {
  const double all_positives = std::accumulate(positives.begin(), positives.end(), 0.0);
  const double all_negatives = std::accumulate(negatives.begin(), negatives.end(), 0.0);
  std::vector<PairCurvePoint> curve;
  if (all_positives == 0 || all_negatives == 0) return curve;
  double positive = 0, negative = 0;
  double recall_step = -1, false_step = -1;  // of the last point kept
  for (std::size_t b = positives.size(); b-- > 0;) {
    if (positives[b] == 0 && negatives[b] == 0) continue;
    positive += positives[b];
    negative += negatives[b];
    PairCurvePoint point{0, negative / all_negatives, positive / all_positives,
                         positive / (positive + negative)};
    const double r = std::floor(point.recall * kStepsOfARate);
    const double f = std::floor(point.false_positive_rate * kStepsOfARate);
    const bool last = positive == all_positives && negative == all_negatives;
    if (r == recall_step && f == false_step && !last) continue;
    point.threshold = least_score(static_cast<std::int32_t>(b), inverse);
    curve.push_back(point);
    recall_step = r;
    false_step = f;
  }
  return curve;
}

}  // namespace rk
