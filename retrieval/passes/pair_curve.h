// The ROC curve (recall over the false positive rate) and the precision-recall curve of accepting
// pairs by their score, in one list.
//
// At a threshold t a pair is accepted if its score >= t:
//   recall = accepted positives / positives (also called the true positive rate),
//   false_positive_rate = accepted negatives / negatives, precision = positives among the accepted.
// Every point lies on the true curve. The list goes from the highest threshold that a pair reaches
// to the one that all pairs reach, (1, 1); the point (0, 0), where an ROC curve begins, is not in
// the list. In between a point is kept when recall or the false positive rate passes a multiple of
// 1/200: some 400 points at most.
#pragma once

#include <span>
#include <vector>

namespace rk {

struct PairCurvePoint {
  double threshold, false_positive_rate, recall, precision;
};

// Takes numbers of pairs by fine_bin(score * inverse) (kernels/score_bins.h); a threshold is the
// least score of a bin, so that it accepts the bin's pairs and no others. Empty if one side has no
// pairs.
std::vector<PairCurvePoint> pair_curve(std::span<const double> positives,
                                       std::span<const double> negatives, double inverse);

}  // namespace rk
