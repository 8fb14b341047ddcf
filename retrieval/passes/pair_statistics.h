// Statistics of the scores of all positive and all negative pairs: ROC-AUC, JSD, means, variances,
// histograms, and the curves of recall and precision over the threshold.
//
// One histogram of 51,200 bins over [-1, 1] serves all of them (kernels/score_bins.h).
// AUC = P(positive > negative) + P(equal) / 2. It is exact if positive scores are few enough that
// every negative can be looked up among them; else it comes from the histogram, with the bound
// sum_b p_b n_b / 2 on its error. The histogram spans the range of the scores instead if that goes
// beyond [-1, 1], or not half as far.
#pragma once

#include "retrieval/passes/pair_metrics.h"
#include "retrieval/passes/score_tiles.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace rk {

class PairStatistics {
 public:
  static constexpr int kJsdBins = PairMetrics::kJsdBins;

  // `largest_score`: a bound on |score|. `rows`: number of rows of the whole pass; fixes the order
  // of summation.
  PairStatistics(int members, std::int64_t rows, double largest_score);
  ~PairStatistics();
  PairStatistics(const PairStatistics&) = delete;
  PairStatistics& operator=(const PairStatistics&) = delete;

  // Takes all positive scores at once and makes the AUC exact. Call it before adding any negative.
  void look_up_exactly(std::span<const float> positives);

  void add_positives(std::span<const float> scores);
  // Adds negatives of query position `row`. Only one member at a time may add rows of a row tile.
  void add_negatives(int member, std::int64_t row, std::span<const float> scores);

  // Adds negatives that were counted elsewhere (kernels/blocks/score_block.h): by bins and by cells
  // as below, of which the first is not counted; sums: of the scores and of their squares, row by
  // row. Takes all rows at once; there must be one member.
  void add_counted(std::span<const std::uint64_t> fine, std::span<const std::uint64_t> jsd,
                   std::span<const std::uint64_t> cells, std::span<const double> sums);
  bool nested() const { return nested_; }
  double inverse() const { return inverse_; }
  bool looks_up() const { return !cells_.empty(); }
  const std::vector<float>& distinct() const { return distinct_; }
  const std::vector<std::int32_t>& distinct_first() const { return distinct_first_; }

  // `symmetric`: each negative pair was added once and stands for two.
  PairMetrics result(bool symmetric) const;
  std::size_t bytes() const;

 private:
  // The numbers of (positive, negative) pairs in which the positive scores higher, and equally.
  struct Wins {
    double wins = 0, ties = 0;
  };
  Wins wins_exactly(double sides) const;  // from look_up_exactly()
  static Wins wins_by_bins(const std::vector<double>& positive,
                           const std::vector<double>& negative);

  struct Histogram;
  struct Moments {
    double sum = 0, squares = 0;
  };
  void bins_of(const float* scores, std::int64_t n, std::int32_t* auc, std::int32_t* jsd) const;

  bool nested_;                            // the JSD's bins follow from the fine bins
  double inverse_ = 1;                     // 1 / half the span of the fine histogram
  std::vector<Moments> negative_moments_;  // per row tile, so that threads do not change the sum
  Moments positive_moments_;
  std::int64_t positive_count_ = 0;
  std::unique_ptr<Histogram> positive_histogram_;
  std::vector<std::unique_ptr<Histogram>> negative_histograms_;  // one per member

  // Exact AUC: the distinct positive scores, ascending; how often each occurs; the first of each
  // fine bin; and, by member, the number of negatives below score k and above score k - 1 (cell
  // 2 k), and equal to score k (cell 2 k + 1).
  std::vector<float> distinct_;
  std::vector<std::int64_t> distinct_counts_;
  std::vector<std::int32_t> distinct_first_;
  std::vector<std::vector<std::int64_t>> cells_;
};

}  // namespace rk
