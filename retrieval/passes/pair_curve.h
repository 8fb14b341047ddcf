// What accepting pairs by their score gives at every threshold: the ROC curve (recall over the
// false positive rate) and the precision-recall curve, in one list.
//
// At a threshold t a pair is accepted where its score >= t:
//   recall = accepted positives / positives (also called the true positive rate),
//   false_positive_rate = accepted negatives / negatives, precision = positives among the accepted.
// Every point is one of the true curve. The list goes from the highest threshold that a pair
// reaches to the one that all reach, (1, 1); an ROC curve begins before it at (0, 0). Between the
// ends a point is kept where recall or the false positive rate passes a multiple of 1/200: some 400
// points at most.
#pragma once

#include <span>
#include <vector>

namespace rk {

struct PairCurvePoint {
  double threshold, false_positive_rate, recall, precision;
};

// Numbers of pairs by score, in bins of equal width over [-span, span] (what lies outside is in the
// outermost ones); a threshold is the lower edge of a bin. Empty where one side has no pairs.
std::vector<PairCurvePoint> pair_curve(std::span<const double> positives,
                                       std::span<const double> negatives, double span);

}  // namespace rk
