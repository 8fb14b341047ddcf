#include "retrieval/passes/pair_statistics.h"

#include "engine/base/integers.h"
#include "kernels/score_bins.h"
#include "retrieval/passes/undefined.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

namespace rk {
namespace {

constexpr std::int64_t kBlock = 256;
// Rows normalised in float32 have products slightly above 1, which belong into the last bin anyway.
constexpr double kUnit = 1.0001;
// Scores in a smaller range would use only few of the bins over [-1, 1].
constexpr double kNarrow = 0.5;

double variance(double sum, double squares, double n) {
  const double mean = sum / n;
  return std::max(squares / n - mean * mean, 0.0);
}

double jensen_shannon(const std::vector<double>& p, const std::vector<double>& q) {
  double sum_p = 0, sum_q = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    sum_p += p[i];
    sum_q += q[i];
  }
  if (sum_p == 0 || sum_q == 0) return kUndefined;
  double divergence = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double a = p[i] / sum_p, b = q[i] / sum_q, m = (a + b) / 2;
    if (a > 0) divergence += a * std::log2(a / m) / 2;
    if (b > 0) divergence += b * std::log2(b / m) / 2;
  }
  return divergence;
}

// The numbers of (positive, negative) pairs in which the positive scores higher, and equally.
struct Wins {
  double wins = 0, ties = 0;
};

Wins wins_by_bins(const std::vector<double>& positive, const std::vector<double>& negative) {
  Wins out;
  double below = 0;
  for (std::size_t b = 0; b < positive.size(); ++b) {
    out.wins += positive[b] * below;
    out.ties += positive[b] * negative[b];
    below += negative[b];
  }
  return out;
}

}  // namespace

// 32-bit counters (`small`) keep the bins in use inside the first-level cache; flush() adds them to
// `fine` before they can overflow.
struct PairStatistics::Histogram {
  Histogram(bool with_jsd, std::int64_t most_in_small)
      : fine(kFineBins, 0),
        jsd(with_jsd ? kJsdBins : 0, 0),
        small(kFineBins, 0),
        most(most_in_small) {}

  void add(const std::int32_t* auc_bins, const std::int32_t* jsd_bins, std::int64_t n) {
    if (pending + n > most) flush();
    pending += n;
    std::uint32_t* counters = small.data();
    // Two bins per load: loads and stores are the bottleneck of counting.
    std::int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
      std::uint64_t two;
      std::memcpy(&two, auc_bins + i, sizeof(two));
      ++counters[static_cast<std::uint32_t>(two)];
      ++counters[two >> 32U];
    }
    if (i < n) ++counters[auc_bins[i]];
    if (!jsd.empty()) {
      for (std::int64_t j = 0; j < n; ++j) ++jsd[at(jsd_bins[j])];
    }
  }
  void flush() {
    for (std::size_t i = 0; i < small.size(); ++i) fine[i] += small[i];
    std::fill(small.begin(), small.end(), 0U);
    pending = 0;
  }
  std::int64_t fine_count(std::size_t bin) const { return fine[bin] + small[bin]; }

  std::vector<std::int64_t> fine, jsd;
  std::vector<std::uint32_t> small;
  std::int64_t most;
  std::int64_t pending = 0;
};

PairStatistics::PairStatistics(int members, std::int64_t rows, double largest_score,
                               std::int64_t most_in_small)
    : nested_(largest_score == 0 || (largest_score >= kNarrow && largest_score <= kUnit)),
      inverse_(nested_ ? 1.0 : 1.0 / largest_score),
      negative_moments_(static_cast<std::size_t>(rows / ScoreTiles::kTileRows + 1)),
      positive_histogram_(std::make_unique<Histogram>(!nested_, most_in_small)) {
  for (int i = 0; i < members; ++i) {
    negative_histograms_.push_back(std::make_unique<Histogram>(!nested_, most_in_small));
  }
}

PairStatistics::~PairStatistics() = default;

std::size_t PairStatistics::bytes() const {
  const std::size_t histogram = static_cast<std::size_t>(kFineBins) * 12;
  return (negative_histograms_.size() + 1) * histogram +
         negative_moments_.size() * sizeof(Moments) + (order_ ? order_->bytes() : 0);
}

void PairStatistics::bins_of(const float* scores, std::int64_t n, std::int32_t* auc,
                             std::int32_t* jsd) const {
  if (nested_) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) auc[i] = fine_bin_fused(scores[i]);
    return;
  }
  const double inverse = inverse_;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    auc[i] = fine_bin(static_cast<double>(scores[i]) * inverse);
    jsd[i] = fine_bin(static_cast<double>(scores[i])) / kFinePerJsd;
  }
}

void PairStatistics::look_up_exactly(int threads, std::span<const float> positives) {
  order_.emplace(threads, positives);
}

void PairStatistics::add_positives(std::span<const float> scores) {
  std::array<std::int32_t, kBlock> auc, jsd;
  const auto n = static_cast<std::int64_t>(scores.size());
  if (!origin_) origin_ = n > 0 ? static_cast<double>(scores[0]) : 0.0;
  positive_count_ += n;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, n - begin);
    bins_of(scores.data() + begin, count, auc.data(), jsd.data());
    positive_histogram_->add(auc.data(), jsd.data(), count);
  }
  for (const float score : scores) {
    const double s = static_cast<double>(score) - *origin_;
    positive_moments_.sum += s;
    positive_moments_.squares += s * s;
  }
}

void PairStatistics::add_negatives(int member, std::int64_t row, std::span<const float> scores) {
  std::array<std::int32_t, kBlock> auc, jsd;
  const auto n = static_cast<std::int64_t>(scores.size());
  Histogram& histogram = *negative_histograms_[at(member)];
  const double origin = origin_.value_or(0);
  double sum = 0, squares = 0;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, n - begin);
    const float* block = scores.data() + begin;
    bins_of(block, count, auc.data(), jsd.data());
#pragma omp simd reduction(+ : sum, squares)
    for (std::int64_t i = 0; i < count; ++i) {
      const double s = static_cast<double>(block[i]) - origin;
      sum += s;
      squares += s * s;
    }
    histogram.add(auc.data(), jsd.data(), count);
  }
  Moments& moments = negative_moments_[at(row / ScoreTiles::kTileRows)];
  moments.sum += sum;
  moments.squares += squares;
  if (order_) moments.twice_wins += static_cast<double>(order_->twice_wins(scores));
}

void PairStatistics::add_counted(std::span<const std::uint64_t> fine,
                                 std::span<const std::uint64_t> jsd, std::span<const double> sums,
                                 std::span<const std::uint64_t> twice_wins) {
  const auto add = [](std::vector<std::int64_t>& to, std::span<const std::uint64_t> counts) {
    for (std::size_t i = 0; i < counts.size(); ++i) to[i] += static_cast<std::int64_t>(counts[i]);
  };
  add(negative_histograms_.front()->fine, fine);
  add(negative_histograms_.front()->jsd, jsd);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < sums.size(); i += 2) {
    sum += sums[i];
    squares += sums[i + 1];
  }
  const auto n = static_cast<double>(std::accumulate(fine.begin(), fine.end(), std::uint64_t{0}));
  const double origin = origin_.value_or(0);
  negative_moments_.front().sum += sum - n * origin;
  negative_moments_.front().squares += squares - origin * (2 * sum - n * origin);
  for (const std::uint64_t wins : twice_wins) {
    negative_moments_.front().twice_wins += static_cast<double>(wins);
  }
}

PairMetrics PairStatistics::result(bool symmetric) const {
  std::vector<double> positive(kFineBins), negative(kFineBins);
  std::vector<double> positive_jsd(kJsdBins), negative_jsd(kJsdBins);
  for (std::size_t b = 0; b < kFineBins; ++b) {
    positive[b] = static_cast<double>(positive_histogram_->fine_count(b));
    std::int64_t count = 0;
    for (const auto& h : negative_histograms_) count += h->fine_count(b);
    negative[b] = static_cast<double>(count);
    if (nested_) {
      positive_jsd[b / kFinePerJsd] += positive[b];
      negative_jsd[b / kFinePerJsd] += negative[b];
    }
  }
  if (!nested_) {
    for (std::size_t b = 0; b < kJsdBins; ++b) {
      positive_jsd[b] = static_cast<double>(positive_histogram_->jsd[b]);
      for (const auto& h : negative_histograms_) negative_jsd[b] += static_cast<double>(h->jsd[b]);
    }
  }

  const double sides = symmetric ? 2 : 1;
  for (double& count : negative) count *= sides;
  for (double& count : negative_jsd) count *= sides;

  PairMetrics out{};
  const auto p = static_cast<double>(positive_count_);
  double n = 0;
  for (const double count : negative) n += count;
  out.positives = positive_count_;
  out.negatives = static_cast<std::int64_t>(n);
  out.positive_histogram.assign(positive_jsd.begin(), positive_jsd.end());
  out.negative_histogram.assign(negative_jsd.begin(), negative_jsd.end());
  out.curve = pair_curve(positive, negative, inverse_);

  Moments total;
  for (const Moments& m : negative_moments_) {
    total.sum += m.sum;
    total.squares += m.squares;
    total.twice_wins += m.twice_wins;
  }
  if (p > 0) {
    out.pos_mean = *origin_ + positive_moments_.sum / p;
    out.pos_var = variance(positive_moments_.sum, positive_moments_.squares, p);
  }
  if (n > 0) {
    const double looked_at = n / sides;
    out.neg_mean = origin_.value_or(0) + total.sum / looked_at;
    out.neg_var = variance(total.sum, total.squares, looked_at);
  }
  out.jsd = jensen_shannon(positive_jsd, negative_jsd);
  if (p == 0 || n == 0) return out;
  if (order_) {
    out.roc_auc = std::min(total.twice_wins * sides / 2 / p / n, 1.0);
    out.roc_auc_error_bound = 0;
    return out;
  }
  const Wins wins = wins_by_bins(positive, negative);
  out.roc_auc_error_bound = wins.ties / 2 / p / n;
  out.roc_auc = (wins.wins + wins.ties / 2) / p / n;
  return out;
}

}  // namespace rk
