// What the scores of all pairs of one class and of two classes say: how well they tell the pairs
// apart, and how they are spread.
#pragma once

#include "kernels/score_bins.h"
#include "retrieval/passes/pair_curve.h"
#include "retrieval/passes/undefined.h"

#include <cstdint>
#include <vector>

namespace rk {

// NaN, or empty, where there are no positive or no negative pairs, or where nobody asked.
struct PairMetrics {
  static constexpr int kJsdBins = rk::kJsdBins;
  static constexpr double kJsdBinWidth = 2.0 / kJsdBins;

  double roc_auc = kUndefined;              // [0, 1]
  double roc_auc_error_bound = kUndefined;  // 0 if the AUC is exact
  double jsd = kUndefined;                  // Jensen-Shannon divergence of the histograms, [0, 1]
  double pos_mean = kUndefined, pos_var = kUndefined;
  double neg_mean = kUndefined, neg_var = kUndefined;
  std::int64_t positives = 0, negatives = 0;  // ordered pairs
  // [kJsdBins] ordered pairs by score; bin b starts at -1 + 2 b / kJsdBins; scores outside [-1, 1]
  // are in the outermost bins.
  std::vector<std::int64_t> positive_histogram, negative_histogram;
  std::vector<PairCurvePoint> curve;
};

}  // namespace rk
