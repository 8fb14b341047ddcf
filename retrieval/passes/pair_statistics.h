// Statistics of the scores of all positive and all negative pairs: ROC-AUC, JSD, means, variances,
// histograms, and the curves of recall and precision over the threshold.
//
// One histogram of 51,200 bins over [-1, 1] serves all of them (kernels/score_bins.h).
// AUC = P(positive > negative) + P(equal) / 2. It is exact if positive scores are few enough that
// every negative can be looked up among them; else it comes from the histogram, with the bound
// sum_b p_b n_b / 2 on its error. The histogram spans the range of the scores instead if that goes
// beyond [-1, 1], or reaches less than half as far.
#pragma once

#include "retrieval/passes/pair_metrics.h"
#include "retrieval/passes/positive_order.h"
#include "retrieval/passes/score_tiles.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace rk {

class PairStatistics {
 public:
  // `largest_score`: a bound on |score|. `rows`: number of rows of the whole pass; fixes the order
  // of summation. `most_in_small`: how many pairs the 32-bit counters of a histogram take before
  // they are added to those of 64 bits; 256 to 2^32 - 1.
  PairStatistics(int members, std::int64_t rows, double largest_score,
                 std::int64_t most_in_small = std::numeric_limits<std::uint32_t>::max());
  ~PairStatistics();
  PairStatistics(const PairStatistics&) = delete;
  PairStatistics& operator=(const PairStatistics&) = delete;

  // Takes all positive scores at once and makes the AUC exact. Call it before adding any negative.
  void look_up_exactly(int threads, std::span<const float> positives);

  // The first call comes before any negative.
  void add_positives(std::span<const float> scores);
  // Adds negatives of query position `row`. Only one member at a time may add rows of a row tile.
  void add_negatives(int member, std::int64_t row, std::span<const float> scores);

  // Adds negatives that were counted elsewhere (kernels/blocks/score_block.h): by bins, sums of the
  // scores and of their squares row by row, and, if order() is not null, twice_wins() of each row.
  // Takes all rows at once; there must be one member.
  void add_counted(std::span<const std::uint64_t> fine, std::span<const std::uint64_t> jsd,
                   std::span<const double> sums, std::span<const std::uint64_t> twice_wins);
  bool nested() const { return nested_; }
  double inverse() const { return inverse_; }
  const PositiveOrder* order() const { return order_ ? &*order_ : nullptr; }

  // `symmetric`: each negative pair was added once and stands for two.
  PairMetrics result(bool symmetric) const;
  std::size_t bytes() const;

 private:
  // Sums of scores less origin_; twice_wins as in ScoreOrder, in whole numbers up to 2^53.
  struct Moments {
    double sum = 0, squares = 0, twice_wins = 0;
  };
  struct Histogram;
  void bins_of(const float* scores, std::int64_t n, std::int32_t* auc, std::int32_t* jsd) const;

  bool nested_;         // the JSD's bins follow from the fine bins
  double inverse_ = 1;  // 1 / half the span of the fine histogram
  // A score among the others: the variance of scores that are narrow and far from 0 would be lost
  // in the difference of their squares' mean and their mean's square.
  std::optional<double> origin_;
  std::vector<Moments> negative_moments_;  // per row tile, so that threads do not change the sum
  Moments positive_moments_;
  std::int64_t positive_count_ = 0;
  std::unique_ptr<Histogram> positive_histogram_;
  std::vector<std::unique_ptr<Histogram>> negative_histograms_;  // one per member
  std::optional<PositiveOrder> order_;
};

}  // namespace rk
